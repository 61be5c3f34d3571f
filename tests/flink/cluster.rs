//! A real Flink cluster on loopback for as long as it is in use: JobManager, TaskManager and SQL Gateway,
//! a process each, from the jars of a folder.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// The folder that `benches/flink/setup.sh` prints, with the jar of `flink-sql-gateway` in `gateway/`.
pub const FOLDER: &str = "EBBFLOW_TEST_FLINK";

/// Longest wait for a process to be ready.
const LONGEST: Duration = Duration::from_secs(180);

/// Packages whose insides Flink looks at.
const OPENS: &[&str] = &[
    "java.lang",
    "java.net",
    "java.io",
    "java.nio",
    "sun.nio.ch",
    "java.lang.reflect",
    "java.text",
    "java.time",
    "java.util",
    "java.util.concurrent",
    "java.util.concurrent.atomic",
    "java.util.concurrent.locks",
];

/// A cluster; its processes end when it is dropped.
pub struct Cluster {
    folder: tempfile::TempDir,
    rest: u16,
    gateway: u16,
    processes: Vec<Child>,
}

fn free_ports<const N: usize>() -> [u16; N] {
    let listeners: Vec<TcpListener> = (0..N)
        .map(|_| TcpListener::bind("127.0.0.1:0").expect("a free port"))
        .collect();
    std::array::from_fn(|i| listeners[i].local_addr().expect("an address").port())
}

impl Cluster {
    /// Starts a cluster, if the jars are there.
    pub fn start() -> Option<Self> {
        let jars = PathBuf::from(std::env::var_os(FOLDER)?);
        let folder = tempfile::tempdir().expect("a folder");
        let dir = folder.path();
        for name in [
            "conf",
            "tmp",
            "checkpoints",
            "savepoints",
            "no-plugins",
            "data",
        ] {
            fs::create_dir(dir.join(name)).expect("a folder");
        }
        let [rest, rpc, task, data, blob, gateway] = free_ports::<6>();
        let shown = dir.display();
        let config = format!(
            "jobmanager: {{bind-host: 127.0.0.1, rpc: {{address: 127.0.0.1, port: {rpc}}}}}\n\
             taskmanager:\n\
             \x20 bind-host: 127.0.0.1\n\
             \x20 host: 127.0.0.1\n\
             \x20 rpc: {{port: {task}}}\n\
             \x20 data: {{port: {data}}}\n\
             \x20 numberOfTaskSlots: 4\n\
             \x20 cpu: {{cores: 2.0}}\n\
             \x20 memory:\n\
             \x20   framework: {{heap: {{size: 128m}}, off-heap: {{size: 128m}}}}\n\
             \x20   task: {{heap: {{size: 320m}}, off-heap: {{size: 0m}}}}\n\
             \x20   managed: {{size: 128m}}\n\
             \x20   network: {{min: 64m, max: 64m}}\n\
             \x20   jvm-metaspace: {{size: 256m}}\n\
             \x20   jvm-overhead: {{min: 192m, max: 192m}}\n\
             blob: {{server: {{port: {blob}}}}}\n\
             rest: {{address: 127.0.0.1, bind-address: 127.0.0.1, port: {rest}}}\n\
             parallelism: {{default: 1}}\n\
             io: {{tmp: {{dirs: {shown}/tmp}}}}\n\
             execution:\n\
             \x20 target: remote\n\
             \x20 checkpointing: {{dir: \"file://{shown}/checkpoints\", savepoint-dir: \"file://{shown}/savepoints\"}}\n\
             sql-gateway: {{endpoint: {{rest: {{address: 127.0.0.1, bind-address: 127.0.0.1, port: {gateway}}}}}}}\n"
        );
        fs::write(dir.join("conf/config.yaml"), config).expect("the configuration is written");
        let mut cluster = Self {
            folder,
            rest,
            gateway,
            processes: Vec::new(),
        };
        let conf = cluster.path("conf").display().to_string();
        let manager = "org.apache.flink.runtime.entrypoint.StandaloneSessionClusterEntrypoint";
        let runner = "org.apache.flink.runtime.taskexecutor.TaskManagerRunner";
        let gateway = "org.apache.flink.table.gateway.SqlGateway";
        cluster.run(&jars, &["-Xmx512m"], &[manager, "--configDir", &conf]);
        cluster.run(
            &jars,
            &["-Xmx448m", "-XX:MaxDirectMemorySize=192m"],
            &[runner, "--configDir", &conf],
        );
        cluster.run(
            &jars,
            &["-Xmx512m"],
            &[gateway, "-Dsql-gateway.endpoint.rest.address=127.0.0.1"],
        );
        cluster.wait_until("there are slots", |c| {
            get(c.rest, "/overview").is_some_and(|text| text.contains("\"slots-available\":4"))
        });
        cluster.wait_until("the gateway answers", |c| {
            get(c.gateway, "/info").is_some_and(|text| text.contains("Apache Flink"))
        });
        Some(cluster)
    }

    /// The gateway's address.
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.gateway)
    }

    /// A path in the cluster's folder.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// What the JobManager's REST API says.
    pub fn ask(&self, path: &str) -> String {
        get(self.rest, path).unwrap_or_default()
    }

    fn run(&mut self, jars: &Path, memory: &[&str], arguments: &[&str]) {
        let log =
            fs::File::create(self.path(&format!("{}.log", self.processes.len()))).expect("a log");
        let classes = ["nexmark-classes", "lib/*", "gateway/*"];
        let classes = classes.map(|part| jars.join(part).display().to_string());
        let mut command = Command::new("java");
        for package in OPENS {
            command.arg(format!("--add-opens=java.base/{package}=ALL-UNNAMED"));
        }
        command
            .args(memory)
            .args(["-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"])
            .args(["-XX:MaxMetaspaceSize=256m", "-Duser.timezone=UTC"])
            .arg(format!("-Djava.io.tmpdir={}", self.path("tmp").display()))
            .args(["-cp", &classes.join(":")])
            .args(arguments)
            .env("FLINK_CONF_DIR", self.path("conf"))
            .env("FLINK_PLUGINS_DIR", self.path("no-plugins"))
            .stdin(Stdio::null())
            .stdout(log.try_clone().expect("a log"))
            .stderr(log);
        self.processes.push(command.spawn().expect("java runs"));
    }

    /// Waits until something holds; the logs are shown when it does not.
    pub fn wait_until(&mut self, what: &str, holds: impl Fn(&Self) -> bool) {
        let end = Instant::now() + LONGEST;
        while !holds(self) {
            let ended = self.processes.iter_mut().any(|p| {
                let status = p.try_wait().expect("a process");
                status.is_some()
            });
            if ended || Instant::now() > end {
                let logs: Vec<String> = (0..self.processes.len())
                    .map(|i| fs::read_to_string(self.path(&format!("{i}.log"))).unwrap_or_default())
                    .collect();
                panic!("not even after a while: {what}\n{}", logs.join("\n----\n"));
            }
            sleep(Duration::from_millis(200));
        }
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        // the gateway first: it asks the others
        for process in self.processes.iter_mut().rev() {
            let _ = process.kill();
            let _ = process.wait();
        }
    }
}

/// The answer of a server on loopback to a GET, status line and all.
fn get(port: u16, path: &str) -> Option<String> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).ok()?;
    stream
        .set_read_timeout(Some(Duration::from_secs(10)))
        .ok()?;
    write!(
        stream,
        "GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n"
    )
    .ok()?;
    let mut text = String::new();
    stream.read_to_string(&mut text).ok()?;
    Some(text)
}
