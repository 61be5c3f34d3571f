//! A real Kafka broker on loopback, from the jars of a folder, for as long as it is in use.

use std::fs;
use std::io::Write as _;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::Mutex;
use std::thread::sleep;
use std::time::{Duration, Instant};

use rdkafka::ClientConfig;
use rdkafka::consumer::{BaseConsumer, Consumer};

/// The folder that holds the jars of `org.apache.kafka:kafka_2.13` and `kafka-tools`.
pub const JARS: &str = "EBBFLOW_KAFKA_JARS";

/// A broker and its data.
pub struct Broker {
    jars: PathBuf,
    folder: tempfile::TempDir,
    port: u16,
    process: Mutex<Child>,
}

pub fn free_ports() -> [u16; 2] {
    let listen = || TcpListener::bind("127.0.0.1:0").expect("a free port");
    let (a, b) = (listen(), listen());
    [a, b].map(|l| l.local_addr().expect("an address").port())
}

impl Broker {
    /// Starts a broker, if the jars are there.
    pub fn start() -> Option<Self> {
        let jars = PathBuf::from(std::env::var_os(JARS)?);
        let folder = tempfile::tempdir().expect("a folder");
        let [port, controller] = free_ports();
        let properties = format!(
            "process.roles=broker,controller\n\
             node.id=1\n\
             controller.quorum.voters=1@127.0.0.1:{controller}\n\
             listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}\n\
             advertised.listeners=PLAINTEXT://127.0.0.1:{port}\n\
             controller.listener.names=CONTROLLER\n\
             listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT\n\
             log.dirs={}\n\
             offsets.topic.replication.factor=1\n\
             offsets.topic.num.partitions=4\n\
             transaction.state.log.replication.factor=1\n\
             transaction.state.log.min.isr=1\n\
             transaction.state.log.num.partitions=4\n\
             share.coordinator.state.topic.replication.factor=1\n\
             share.coordinator.state.topic.min.isr=1\n\
             group.initial.rebalance.delay.ms=0\n",
            folder.path().join("data").display()
        );
        let file = folder.path().join("server.properties");
        fs::write(&file, properties).expect("the properties are written");
        let formatted = java(&jars)
            .args(["kafka.tools.StorageTool", "format", "-t"])
            .args(["MkU3OEVBNTcwNTJENDM2Qg", "-c"])
            .arg(&file)
            .output()
            .expect("java runs");
        assert!(
            formatted.status.success(),
            "{}",
            String::from_utf8_lossy(&formatted.stderr)
        );
        let process = Mutex::new(run(&jars, folder.path()));
        let broker = Self {
            jars,
            folder,
            port,
            process,
        };
        wait_until_ready(&broker.address());
        Some(broker)
    }

    /// `host:port`.
    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// Kills the broker and starts it again with its data.
    pub fn restart(&self, pause: Duration) {
        let mut process = self.process.lock().expect("a lock");
        process.kill().expect("the broker runs");
        process.wait().expect("the broker ends");
        sleep(pause);
        *process = run(&self.jars, self.folder.path());
        drop(process);
        wait_until_ready(&self.address());
    }

    /// By what the first records of partition 0 of `topic` are compressed, as the broker keeps them:
    /// none, gzip, snappy, lz4, zstd.
    pub fn compression(&self, topic: &str) -> &'static str {
        let log = self
            .folder
            .path()
            .join(format!("data/{topic}-0/00000000000000000000.log"));
        let log = fs::read(log).expect("a log");
        // The header of a batch: offset, length, epoch, version, checksum, attributes.
        let attributes = log[8 + 4 + 4 + 1 + 4 + 1];
        ["none", "gzip", "snappy", "lz4", "zstd"][usize::from(attributes & 7)]
    }

    /// The folder of the jars.
    pub fn jars(&self) -> &Path {
        &self.jars
    }

    /// A tool of Kafka's own, in Java.
    pub fn tool(&self, class: &str) -> Command {
        let mut command = java(&self.jars);
        command
            .arg(format!("org.apache.kafka.tools.{class}"))
            .args(["--bootstrap-server", &self.address()]);
        command
    }

    /// Writes `records`, a line each, with Kafka's own producer and its `options`.
    pub fn produce_with_java(
        &self,
        topic: &str,
        options: &[&str],
        records: impl Iterator<Item = String>,
    ) {
        let mut producer = self
            .tool("ConsoleProducer")
            .args(["--topic", topic])
            .args(options)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("java runs");
        let mut input = producer.stdin.take().expect("a pipe");
        for record in records {
            writeln!(input, "{record}").expect("a line");
        }
        drop(input);
        assert!(producer.wait().expect("it ends").success());
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        if let Ok(mut process) = self.process.lock() {
            let _ = process.kill();
            let _ = process.wait();
        }
    }
}

/// Waits until a broker answers.
pub fn wait_until_ready(address: &str) {
    let end = Instant::now() + Duration::from_secs(90);
    let consumer: BaseConsumer = ClientConfig::new()
        .set("bootstrap.servers", address)
        .set("log_level", "0")
        .create()
        .expect("a client");
    while consumer
        .fetch_metadata(None, Duration::from_millis(500))
        .is_err()
    {
        assert!(Instant::now() < end, "the broker does not start");
        sleep(Duration::from_millis(100));
    }
}

fn java(jars: &Path) -> Command {
    let mut command = Command::new("java");
    command
        .args(["-Xmx512m", "-XX:TieredStopAtLevel=1", "-cp"])
        .arg(jars.join("*"));
    command
}

fn run(jars: &Path, folder: &Path) -> Child {
    let log = fs::File::options()
        .create(true)
        .append(true)
        .open(folder.join("log"))
        .expect("a log");
    java(jars)
        .arg("kafka.Kafka")
        .arg(folder.join("server.properties"))
        .stdin(Stdio::null())
        .stdout(log.try_clone().expect("a log"))
        .stderr(log)
        .spawn()
        .expect("java runs")
}

/// The lines that a process printed.
pub fn lines(output: &Output) -> Vec<String> {
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let text = String::from_utf8_lossy(&output.stdout);
    text.lines().map(str::to_string).collect()
}
