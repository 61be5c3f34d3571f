import org.apache.flink.configuration.ConfigOption;
import org.apache.flink.configuration.ConfigurationUtils;
import org.apache.flink.table.factories.*;

import java.util.*;

/**
 * Prints the connectors and formats of the jars on the class path with their options: src/portability/flink-2.3.txt.
 *
 * <p>The jars are those of Flink's lib folder, flink-sql-connector-kafka, and flink-sql-avro,
 * flink-sql-avro-confluent-registry, flink-sql-parquet and flink-sql-protobuf.
 */
public class Factories {
    public static void main(String[] args) {
        Map<String, Set<String>> found = new TreeMap<>();
        for (Iterator<Factory> all = ServiceLoader.load(Factory.class).iterator(); all.hasNext(); ) {
            Factory f = all.next();
            boolean connector = f instanceof DynamicTableFactory;
            boolean format = f instanceof DecodingFormatFactory || f instanceof EncodingFormatFactory;
            if (!connector && !format) continue;
            Set<String> keys = found.computeIfAbsent((connector ? "connector " : "format ") + f.factoryIdentifier(), k -> new TreeSet<>());
            List<ConfigOption<?>> options = new ArrayList<>(f.requiredOptions());
            options.addAll(f.optionalOptions());
            for (ConfigOption<?> o : options) keys.add(ConfigurationUtils.canBePrefixMap(o) ? o.key() + ".*" : o.key());
            // prefixes that a factory leaves unchecked without an option for them
            if (f.factoryIdentifier().contains("kafka")) keys.add("properties.*");
            if (f.factoryIdentifier().equals("parquet")) keys.add("*");
        }
        System.out.println("# The connectors and formats of Flink 2.3 and their options, as tests/flink/Factories.java prints them.");
        found.forEach((name, keys) -> System.out.println((name + " " + String.join(" ", keys)).trim()));
    }
}
