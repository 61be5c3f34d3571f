import org.apache.flink.configuration.ConfigOption;
import org.apache.flink.configuration.ConfigOptions;
import org.apache.flink.streaming.api.functions.sink.legacy.RichSinkFunction;
import org.apache.flink.table.connector.ChangelogMode;
import org.apache.flink.table.connector.RuntimeConverter;
import org.apache.flink.table.connector.sink.DynamicTableSink;
import org.apache.flink.table.connector.sink.legacy.SinkFunctionProvider;
import org.apache.flink.table.connector.source.DynamicTableSource;
import org.apache.flink.table.connector.source.LookupTableSource;
import org.apache.flink.table.connector.source.lookup.LookupFunctionProvider;
import org.apache.flink.table.data.GenericRowData;
import org.apache.flink.table.data.RowData;
import org.apache.flink.table.data.StringData;
import org.apache.flink.table.factories.*;
import org.apache.flink.table.functions.FunctionContext;
import org.apache.flink.table.functions.LookupFunction;
import org.apache.flink.table.functions.ScalarFunction;
import org.apache.flink.table.types.DataType;
import org.apache.flink.types.Row;
import org.apache.flink.types.RowKind;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.*;
import java.util.*;
import java.util.concurrent.atomic.AtomicLong;

/** What the queries need beside Flink: the connectors 'fold' and 'side-input', and the function of q14. */
public class NexmarkExtras {
    /** Changes by kind, and the folded table: live rows and the sum of their hashes. */
    static final AtomicLong[] KINDS = {new AtomicLong(), new AtomicLong(), new AtomicLong(), new AtomicLong()};
    static final AtomicLong ROWS = new AtomicLong(), HASH = new AtomicLong();

    static void reset() {
        for (AtomicLong k : KINDS) k.set(0);
        ROWS.set(0);
        HASH.set(0);
    }

    /** How often a character is in a text. */
    public static class CountChar extends ScalarFunction {
        public long eval(String text, String character) {
            long count = 0;
            if (text != null && character != null && !character.isEmpty())
                for (int i = 0; i < text.length(); i++) if (text.charAt(i) == character.charAt(0)) count++;
            return count;
        }
    }

    /**
     * Connector 'fold': FNV-1a-64 of each row's text, summed. With 'key' (the number of a column) a +U takes away the row
     * of its key: Flink's Top-1 on insertions leaves the -U out even for a sink that needs it.
     */
    public static class FoldFactory implements DynamicTableSinkFactory {
        static final ConfigOption<Integer> KEY = ConfigOptions.key("key").intType().defaultValue(-1);
        public String factoryIdentifier() { return "fold"; }
        public Set<ConfigOption<?>> requiredOptions() { return Collections.emptySet(); }
        public Set<ConfigOption<?>> optionalOptions() { return Set.of(KEY); }
        public DynamicTableSink createDynamicTableSink(Context c) {
            return new FoldSink(c.getPhysicalRowDataType(), FactoryUtil.createTableFactoryHelper(this, c).getOptions().get(KEY));
        }
    }

    static class FoldSink implements DynamicTableSink {
        final DataType type;
        final int key;
        FoldSink(DataType type, int key) { this.type = type; this.key = key; }
        public ChangelogMode getChangelogMode(ChangelogMode m) { return m; }
        public SinkRuntimeProvider getSinkRuntimeProvider(Context c) { return SinkFunctionProvider.of(new Fold(c.createDataStructureConverter(type), key)); }
        public DynamicTableSink copy() { return this; }
        public String asSummaryString() { return "fold"; }
    }

    static class Fold extends RichSinkFunction<RowData> {
        final DynamicTableSink.DataStructureConverter converter;
        final int key;
        transient Map<Object, Long> live;
        Fold(DynamicTableSink.DataStructureConverter converter, int key) { this.converter = converter; this.key = key; }
        public void open(org.apache.flink.api.common.functions.OpenContext c) {
            converter.open(RuntimeConverter.Context.create(NexmarkExtras.class.getClassLoader()));
            live = new HashMap<>();
        }
        public void invoke(RowData data, Context c) {
            Row row = (Row) converter.toExternal(data);
            RowKind kind = row.getKind();
            KINDS[kind.toByteValue()].incrementAndGet();
            long h = 0xcbf29ce484222325L;
            for (byte b : row.toString().substring(2).getBytes(StandardCharsets.UTF_8)) h = (h ^ (b & 0xff)) * 0x100000001b3L;
            if (key >= 0) {
                Long old = live.put(row.getField(key), h);
                if (old != null) { ROWS.decrementAndGet(); HASH.addAndGet(-old); }
            }
            boolean add = kind == RowKind.INSERT || kind == RowKind.UPDATE_AFTER;
            ROWS.addAndGet(add ? 1 : -1);
            HASH.addAndGet(add ? h : -h);
        }
    }

    /** Connector 'side-input': a file of "number,text" lines that can be looked up by the number, which Flink's filesystem cannot. */
    public static class SideInputFactory implements DynamicTableSourceFactory {
        static final ConfigOption<String> PATH = ConfigOptions.key("path").stringType().noDefaultValue();
        static final ConfigOption<String> FORMAT = ConfigOptions.key("format").stringType().noDefaultValue();
        public String factoryIdentifier() { return "side-input"; }
        public Set<ConfigOption<?>> requiredOptions() { return Set.of(PATH); }
        public Set<ConfigOption<?>> optionalOptions() { return Set.of(FORMAT); }
        public DynamicTableSource createDynamicTableSource(Context c) {
            return new SideInput(FactoryUtil.createTableFactoryHelper(this, c).getOptions().get(PATH));
        }
    }

    static class SideInput implements LookupTableSource {
        final String path;
        SideInput(String path) { this.path = path; }
        public LookupRuntimeProvider getLookupRuntimeProvider(LookupContext c) { return LookupFunctionProvider.of(new SideLookup(path)); }
        public DynamicTableSource copy() { return this; }
        public String asSummaryString() { return "side-input"; }
    }

    public static class SideLookup extends LookupFunction {
        final String path;
        transient Map<Long, RowData> rows;
        SideLookup(String path) { this.path = path; }
        public void open(FunctionContext c) throws Exception {
            rows = new HashMap<>();
            for (String line : Files.readAllLines(Paths.get(path))) {
                String[] parts = line.split(",", 2);
                long key = Long.parseLong(parts[0]);
                rows.put(key, GenericRowData.of(key, StringData.fromString(parts[1])));
            }
        }
        public Collection<RowData> lookup(RowData key) throws IOException {
            RowData row = rows.get(key.getLong(0));
            return row == null ? Collections.emptyList() : Collections.singletonList(row);
        }
    }
}
