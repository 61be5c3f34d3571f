import org.apache.flink.api.common.JobExecutionResult;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.table.api.EnvironmentSettings;
import org.apache.flink.table.api.TableEnvironment;
import org.apache.flink.table.api.TableResult;

import com.sun.management.GarbageCollectionNotificationInfo;

import java.lang.management.*;
import java.nio.file.*;
import java.util.*;
import java.util.concurrent.atomic.AtomicLong;

/**
 * Runs Nexmark queries on Flink in this process and prints a JSON line a run.
 *
 * <p>FlinkNexmark ddl=FILE queries=FILE,FILE.. [n=5000000] [warm=1000000] [runs=p1,p2,p1mb,p2mb] [sink=blackhole|fold] [dir=DIR] [-Dkey=value ...]
 *
 * <p>ddl creates the source and the views, a query ends in an INSERT. ${EVENTS_NUM} and ${NEXMARK_DIR} are replaced in both.
 */
public class FlinkNexmark {
    static final AtomicLong LIVE = new AtomicLong();

    public static void main(String[] args) throws Exception {
        Map<String, String> a = new LinkedHashMap<>();
        for (String s : args) { int i = s.indexOf('='); a.put(s.substring(0, i), s.substring(i + 1)); }
        watchHeap();
        long n = Long.parseLong(a.getOrDefault("n", "5000000")), warm = Long.parseLong(a.getOrDefault("warm", "1000000"));
        for (String query : a.get("queries").split(",")) {
            String[] runs = a.getOrDefault("runs", "p1").split(",");
            if (warm > 0) run(a, query, warm, runs[0], false);
            for (String r : runs) run(a, query, n, r, true);
        }
        System.exit(0);
    }

    /** Keeps the most that was alive after a collection. */
    static void watchHeap() {
        for (GarbageCollectorMXBean gc : ManagementFactory.getGarbageCollectorMXBeans())
            ((javax.management.NotificationEmitter) gc).addNotificationListener((notification, h) -> {
                if (!notification.getType().equals(GarbageCollectionNotificationInfo.GARBAGE_COLLECTION_NOTIFICATION)) return;
                var data = (javax.management.openmbean.CompositeData) notification.getUserData();
                long sum = 0;
                for (MemoryUsage u : GarbageCollectionNotificationInfo.from(data).getGcInfo().getMemoryUsageAfterGc().values()) sum += u.getUsed();
                LIVE.accumulateAndGet(sum, Math::max);
            }, null, null);
    }

    static long peakMb() throws Exception {
        for (String l : Files.readAllLines(Paths.get("/proc/self/status"))) if (l.startsWith("VmHWM")) return Long.parseLong(l.replaceAll("[^0-9]", "")) / 1024;
        return -1;
    }

    static Configuration settings(String r, Map<String, String> a) {
        Configuration c = new Configuration();
        c.setString("parallelism.default", r.replaceAll("[^0-9]", ""));
        c.setString("table.local-time-zone", "UTC");
        c.setString("pipeline.object-reuse", "true");
        c.setString("state.backend.type", "hashmap");
        c.setString("rest.bind-address", "127.0.0.1");
        c.setString("rest.address", "127.0.0.1");
        c.setString("restart-strategy.type", "none");
        c.setString("execution.checkpointing.checkpoints-after-tasks-finish.enabled", "false");
        c.setString("taskmanager.memory.network.min", "128mb");
        c.setString("taskmanager.memory.network.max", "128mb");
        if (r.endsWith("mb")) {
            c.setString("table.exec.mini-batch.enabled", "true");
            c.setString("table.exec.mini-batch.allow-latency", "2 s");
            c.setString("table.exec.mini-batch.size", "50000");
        }
        for (Map.Entry<String, String> e : a.entrySet()) if (e.getKey().startsWith("-D")) c.setString(e.getKey().substring(2), e.getValue());
        return c;
    }

    static void run(Map<String, String> a, String query, long n, String r, boolean print) throws Exception {
        TableEnvironment t = TableEnvironment.create(EnvironmentSettings.newInstance().inStreamingMode().withConfiguration(settings(r, a)).build());
        t.createTemporarySystemFunction("count_char", NexmarkExtras.CountChar.class);
        String sink = a.getOrDefault("sink", "blackhole");
        String all = Files.readString(Paths.get(a.get("ddl"))) + "\n" + Files.readString(Paths.get(query));
        all = all.replace("${EVENTS_NUM}", "" + n).replace("${NEXMARK_DIR}", a.getOrDefault("dir", "."));
        NexmarkExtras.reset();
        System.gc();
        LIVE.set(0);
        try { Files.write(Paths.get("/proc/self/clear_refs"), "5".getBytes()); } catch (Exception e) { /* the peak stays that of the process */ }
        var os = (com.sun.management.OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();
        long cpu0 = os.getProcessCpuTime(), w0 = System.nanoTime();
        double net = -1;
        String error = "";
        for (String raw : split(all)) {
            String st = raw.trim();
            if (st.isEmpty()) continue;
            if (st.startsWith("CREATE TABLE side_input")) st = st.replace("'filesystem'", "'side-input'");
            if (st.startsWith("CREATE TABLE nexmark_q") && !sink.equals("blackhole"))
                st = st.replaceAll("(?s)(PARTITIONED BY \\([^)]*\\)\\s*)?WITH \\(.*\\)$", "WITH ('connector' = '" + sink + (st.startsWith("CREATE TABLE nexmark_q9 ") ? "', 'key' = '0" : "") + "')");
            try {
                TableResult result = t.executeSql(st);
                if (st.startsWith("INSERT")) {
                    JobExecutionResult job = result.getJobClient().get().getJobExecutionResult().get();
                    net = job.getNetRuntime() / 1000.0;
                }
            } catch (Throwable e) {
                Throwable root = e;
                while (root.getCause() != null && root.getCause() != root) root = root.getCause();
                error = String.valueOf(root.getMessage()).split("\n")[0].replace('"', '\'');
                break;
            }
        }
        double wall = (System.nanoTime() - w0) / 1e9, cpu = (os.getProcessCpuTime() - cpu0) / 1e9;
        if (!print) return;
        System.out.printf(Locale.ROOT, "{\"engine\":\"flink\",\"query\":\"%s\",\"run\":\"%s\",\"events\":%d,\"net_s\":%.3f,\"wall_s\":%.3f,\"cpu_s\":%.3f,\"events_per_cpu_s\":%.0f,\"peak_mb\":%d,\"live_mb\":%d",
                Paths.get(query).getFileName().toString().replace(".sql", ""), r, n, net, wall, cpu, n / cpu, peakMb(), LIVE.get() >> 20);
        if (sink.equals("fold"))
            System.out.printf(Locale.ROOT, ",\"inserts\":%d,\"update_befores\":%d,\"update_afters\":%d,\"deletes\":%d,\"rows\":%d,\"hash\":\"%016x\"",
                    NexmarkExtras.KINDS[0].get(), NexmarkExtras.KINDS[1].get(), NexmarkExtras.KINDS[2].get(), NexmarkExtras.KINDS[3].get(), NexmarkExtras.ROWS.get(), NexmarkExtras.HASH.get());
        System.out.println(error.isEmpty() ? "}" : ",\"error\":\"" + error + "\"}");
        System.out.flush();
    }

    /** The statements of a script, without comments. Quotes hide a semicolon. */
    static List<String> split(String s) {
        List<String> all = new ArrayList<>();
        StringBuilder cur = new StringBuilder();
        for (int i = 0; i < s.length(); i++) {
            char c = s.charAt(i);
            if (c == '\'' || c == '`') {
                int j = s.indexOf(c, i + 1);
                cur.append(s, i, j + 1);
                i = j;
            } else if (c == '-' && s.startsWith("--", i)) {
                int j = s.indexOf('\n', i);
                i = j < 0 ? s.length() : j;
            } else if (c == ';') {
                all.add(cur.toString());
                cur.setLength(0);
            } else cur.append(c);
        }
        all.add(cur.toString());
        return all;
    }
}
