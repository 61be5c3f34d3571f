import org.apache.flink.configuration.*;
import org.apache.flink.legacy.table.connector.source.SourceFunctionProvider;
import org.apache.flink.streaming.api.functions.source.legacy.RichParallelSourceFunction;
import org.apache.flink.table.connector.ChangelogMode;
import org.apache.flink.table.connector.source.*;
import org.apache.flink.table.data.*;
import org.apache.flink.table.factories.*;

import java.nio.charset.StandardCharsets;
import java.util.*;

/** Connector 'nexmark' for Flink: the events of docs/nexmark.md, generated in process; the twin of src/connectors/nexmark. */
public class NexmarkSource {
    static final String[] FIRST = "Peter Paul Luke John Saul Vicky Kate Julie Sarah Deiter Walter".split(" ");
    static final String[] LAST = "Shultz Abrams Spencer White Bartels Walton Smith Jones Noris".split(" ");
    static final String[] CITY = "Phoenix,Los Angeles,San Francisco,Boise,Portland,Bend,Redmond,Seattle,Kent,Cheyenne".split(",");
    static final String[] STATE = "AZ CA ID OR WA WY".split(" ");
    static final String[] CHANNEL = "Google Facebook Baidu Apple".split(" ");
    static final long[] POW10 = {1, 10, 100, 1000, 10000, 100000};

    final long rate, base;
    final String[] urls = new String[10004];

    NexmarkSource(long rate, long base) {
        this.rate = rate;
        this.base = base;
        for (int x = 0; x < urls.length; x++) {
            String u = "https://www.nexmark.com/" + letters(x, 0, 5) + "/" + letters(x, 1, 5) + "/" + letters(x, 2, 5) + "/item.htm?query=1";
            long c = x - 4;
            urls[x] = c >= 0 && c % 10 > 0 ? u + "&channel_id=" + c * 104729 % 1000003 : u;
        }
    }

    static long r(long n, long k) {
        long z = (n * 256 + k + 1) * 0x9E3779B97F4A7C15L;
        z = (z ^ (z >>> 30)) * 0xBF58476D1CE4E5B9L;
        z = (z ^ (z >>> 27)) * 0x94D049BB133111EBL;
        return z ^ (z >>> 31);
    }

    static long below(long n, long k, long m) { return (r(n, k) >>> 33) % m; }

    static byte[] bytes(long n, long k, int len) {
        byte[] b = new byte[len];
        long w = 0;
        for (int i = 0; i < len; i++) {
            if (i % 12 == 0) w = r(n, k + i / 12);
            b[i] = (byte) ('a' + ((w >>> (5 * (i % 12))) & 31) % 26);
        }
        return b;
    }

    static String letters(long n, long k, int len) { return new String(bytes(n, k, len), StandardCharsets.US_ASCII); }
    static StringData text(long n, long k, int len) { return StringData.fromBytes(bytes(n, k, len)); }
    static long price(long n, long k) { return (100 + below(n, k, 900)) * POW10[(int) below(n, k + 1, 6)]; }

    GenericRowData event(long n) {
        long e = n / 50, o = n % 50, p = e + 1, a = Math.max(1, 3 * e + Math.min(o, 3));
        TimestampData t = TimestampData.fromEpochMillis(base + n * 1000 / rate);
        if (o == 0) {
            StringBuilder card = new StringBuilder();
            for (int g = 0; g < 4; g++) card.append(g == 0 ? "" : " ").append(String.format("%04d", below(n, 4 + g, 10000)));
            return GenericRowData.of(0, GenericRowData.of(1000 + e,
                    StringData.fromString(FIRST[(int) below(n, 0, 11)] + " " + LAST[(int) below(n, 1, 9)]),
                    StringData.fromString(letters(n, 2, 7) + "@" + letters(n, 3, 5) + ".com"),
                    StringData.fromString(card.toString()), StringData.fromString(CITY[(int) below(n, 8, 10)]),
                    StringData.fromString(STATE[(int) below(n, 9, 6)]), t, text(n, 64, (int) (70 + below(n, 10, 61)))), null, null);
        }
        if (o <= 3) {
            long initial = price(n, 0);
            long seller = below(n, 5, 4) > 0 ? 1000 + (p - 1) / 100 * 100 : 1000 + p - 1 - below(n, 6, Math.min(p, 1000));
            return GenericRowData.of(1, null, GenericRowData.of(1000 + a - 1, text(n, 64, 20), text(n, 80, 100), initial, initial + price(n, 2), t,
                    TimestampData.fromEpochMillis(t.getMillisecond() + 1 + below(n, 4, Math.max(1, 2 * (100 * 50 / 3) * 1000 / rate))),
                    seller, 10 + below(n, 7, 5), text(n, 128, (int) (200 + below(n, 8, 151)))), null);
        }
        long auction = below(n, 0, 2) > 0 ? 1000 + (a - 1) / 100 * 100 : 1000 + a - 1 - below(n, 1, Math.min(a, 100));
        long bidder = below(n, 2, 4) > 0 ? 1000 + Math.min(p - 1, (p - 1) / 100 * 100 + 1) : 1000 + p - 1 - below(n, 3, Math.min(p, 1000));
        boolean hot = below(n, 6, 2) > 0;
        int c = (int) below(n, 7, hot ? 4 : 10000);
        return GenericRowData.of(2, null, null, GenericRowData.of(auction, bidder, price(n, 4),
                StringData.fromString(hot ? CHANNEL[c] : "channel-" + c), StringData.fromString(urls[hot ? c : c + 4]), t,
                text(n, 64, (int) (20 + below(n, 8, 41)))));
    }

    // ------------------------------------------------------------------ the connector
    static final ConfigOption<Long> EVENTS = ConfigOptions.key("events.num").longType().defaultValue(0L);
    static final ConfigOption<Long> RATE = ConfigOptions.key("next-event.rate").longType().defaultValue(100000L);
    static final ConfigOption<Long> BASE = ConfigOptions.key("base-time").longType().defaultValue(1704067200000L);

    public static class Factory implements DynamicTableSourceFactory {
        public String factoryIdentifier() { return "nexmark"; }
        public Set<ConfigOption<?>> requiredOptions() { return Collections.emptySet(); }
        public Set<ConfigOption<?>> optionalOptions() { return new HashSet<>(Arrays.asList(EVENTS, RATE, BASE)); }
        public DynamicTableSource createDynamicTableSource(Context c) {
            FactoryUtil.TableFactoryHelper h = FactoryUtil.createTableFactoryHelper(this, c);
            h.validate();
            return new Source(h.getOptions().get(EVENTS), h.getOptions().get(RATE), h.getOptions().get(BASE));
        }
    }

    static class Source implements ScanTableSource {
        final long events, rate, base;
        Source(long events, long rate, long base) { this.events = events; this.rate = rate; this.base = base; }
        public ChangelogMode getChangelogMode() { return ChangelogMode.insertOnly(); }
        public ScanRuntimeProvider getScanRuntimeProvider(ScanContext c) { return SourceFunctionProvider.of(new Function(events, rate, base), events > 0); }
        public DynamicTableSource copy() { return new Source(events, rate, base); }
        public String asSummaryString() { return "nexmark"; }
    }

    static class Function extends RichParallelSourceFunction<RowData> {
        final long events, rate, base;
        volatile boolean run = true;
        Function(long events, long rate, long base) { this.events = events; this.rate = rate; this.base = base; }
        public void run(SourceContext<RowData> out) {
            NexmarkSource g = new NexmarkSource(rate, base);
            int p = getRuntimeContext().getTaskInfo().getNumberOfParallelSubtasks();
            long end = events > 0 ? events : Long.MAX_VALUE;
            for (long n = getRuntimeContext().getTaskInfo().getIndexOfThisSubtask(); run && n < end; n += p)
                synchronized (out.getCheckpointLock()) { out.collect(g.event(n)); }
        }
        public void cancel() { run = false; }
    }

    /** NexmarkSource FROM TO: prints the events of a range, one a line. */
    public static void main(String[] args) {
        NexmarkSource g = new NexmarkSource(100000, 1704067200000L);
        for (long n = Long.parseLong(args[0]); n < Long.parseLong(args[1]); n++) System.out.println(g.event(n));
    }
}
