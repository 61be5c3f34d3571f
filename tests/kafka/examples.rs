//! `examples/kafka`: the commands of its README, as they are written there, but for places: the
//! broker's ports, the folders, and the binary.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread;

use crate::broker::{Broker, free_ports, wait_until_ready};
use crate::cluster::{Cluster, WAIT};

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/kafka");

/// The commands of the README, with its places changed.
struct Readme {
    folder: PathBuf,
    places: Vec<(String, String)>,
}

impl Readme {
    fn new(broker: &Broker, folder: &Path) -> Self {
        let [port, controller] = free_ports();
        let path = |name: &str| folder.join(name).display().to_string();
        let this = Self {
            folder: folder.to_path_buf(),
            places: [
                ("localhost:9092", format!("localhost:{port}")),
                ("127.0.0.1:9092", format!("127.0.0.1:{port}")),
                ("127.0.0.1:9093", format!("127.0.0.1:{controller}")),
                ("/tmp/kafka-jars", broker.jars().display().to_string()),
                ("/tmp/ebbflow-kafka", path("data")),
                ("/tmp/ebbflow-checkpoints", path("checkpoints")),
                ("examples/kafka/", format!("{}/", folder.display())),
                (
                    "ebbflow run",
                    format!("{} run", env!("CARGO_BIN_EXE_ebbflow")),
                ),
            ]
            .map(|(from, to)| (from.to_string(), to))
            .to_vec(),
        };
        for entry in fs::read_dir(FOLDER).expect("the example") {
            let path = entry.expect("a file").path();
            let text = fs::read_to_string(&path).expect("a text");
            let name = path.file_name().expect("a name");
            fs::write(folder.join(name), this.moved(&text)).expect("it is written");
        }
        this
    }

    fn moved(&self, text: &str) -> String {
        let places = self.places.iter();
        places.fold(text.to_string(), |text, (from, to)| text.replace(from, to))
    }

    fn address(&self) -> String {
        self.moved("127.0.0.1:9092")
    }

    /// The commands of its blocks in order.
    fn commands(&self) -> Vec<String> {
        let text = fs::read_to_string(Path::new(FOLDER).join("README.md")).expect("a README");
        let blocks = text.split("```bash\n").skip(1);
        let blocks = blocks.map(|b| b.split("```").next().unwrap_or_default());
        let commands: String = blocks.collect();
        let commands = commands.replace("\\\n", " ");
        commands.lines().map(|line| self.moved(line)).collect()
    }

    fn bash(&self, command: &str) -> Command {
        let log = fs::File::options()
            .create(true)
            .append(true)
            .open(self.folder.join("log"))
            .expect("a log");
        let mut bash = Command::new("bash");
        bash.args(["-c", &format!("exec {command}")])
            .stdin(Stdio::null())
            .stderr(log);
        bash
    }

    /// Runs a command to its end.
    fn run(&self, command: &str) {
        let status = self.bash(command).stdout(Stdio::null()).status();
        let status = status.expect("bash runs");
        assert!(status.success(), "{command}: {}", self.log());
    }

    /// Starts a command that goes on.
    fn start(&self, command: &str) -> Running {
        let command = command.trim().trim_end_matches('&');
        let child = self.bash(command).stdout(Stdio::null()).spawn();
        Running(child.expect("bash runs"))
    }

    /// The first `count` lines that a command prints, sorted.
    fn lines(&self, command: &str, count: usize) -> Vec<String> {
        let mut child = self.bash(command).stdout(Stdio::piped()).spawn();
        let output = child.as_mut().expect("bash runs").stdout.take();
        let _running = Running(child.expect("bash runs"));
        let (sender, lines) = mpsc::channel();
        thread::spawn(move || {
            for line in BufReader::new(output.expect("a pipe")).lines() {
                let Ok(line) = line else { return };
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        let mut found = Vec::new();
        while found.len() < count {
            match lines.recv_timeout(2 * WAIT) {
                Ok(line) => found.push(line),
                Err(_) => panic!("{count} lines of {command}: {found:?} {}", self.log()),
            }
        }
        found.sort();
        found
    }

    fn log(&self) -> String {
        fs::read_to_string(self.folder.join("log")).unwrap_or_default()
    }
}

/// A process that ends with the test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

pub fn as_written(broker: &Broker) {
    let folder = tempfile::tempdir().expect("a folder");
    let readme = Readme::new(broker, folder.path());
    let commands = readme.commands();
    let mut commands = commands.iter().map(String::as_str);
    let mut next = |what: &str| {
        let command = commands.next().expect("another command");
        assert!(command.contains(what), "{what}: {command}");
        command
    };
    // The jars are there.
    next("mvn -q -f tests/kafka/pom.xml dependency:copy-dependencies");
    readme.run(next("kafka.tools.StorageTool format"));
    let _broker = readme.start(next("kafka.Kafka"));
    wait_until_ready(&readme.address());
    let cluster = Cluster {
        address: readme.address(),
    };

    readme.run(next("orders.sql"));
    let windows = next("windows.sql");
    let show = next("--topic order-windows");
    let first = readme.start(windows);
    cluster.wait_for("order-windows", 1, WAIT);
    // As kill -9.
    drop(first);
    let _again = readme.start(windows);
    cluster.wait_for("order-windows", 99, WAIT);
    let rows = readme.lines(show, 99);
    let starts: Vec<String> = rows
        .iter()
        .map(|row| {
            let row: serde_json::Value = serde_json::from_str(row).expect("JSON");
            assert_eq!(row["orders"], 10);
            row["window_start"].as_str().expect("a text").to_string()
        })
        .collect();
    // The last window is not over.
    let expected: Vec<String> = (0..99)
        .map(|w| format!("2024-01-01 00:{:02}:{:02}", w / 6, w % 6 * 10))
        .collect();
    assert_eq!(starts, expected);
    assert_eq!(cluster.values("order-windows"), rows, "each once");

    readme.run(next("--topic customers-cdc <"));
    readme.run(next("changes.sql"));
    let rows = readme.lines(next("--topic customers "), 4);
    let expected = [
        "{\"id\":1}\t{\"id\":1,\"name\":\"Ada\",\"city\":\"London\"}",
        "{\"id\":1}\t{\"id\":1,\"name\":\"Ada\",\"city\":\"Paris\"}",
        "{\"id\":2}\tnull",
        "{\"id\":2}\t{\"id\":2,\"name\":\"Grace\",\"city\":\"New York\"}",
    ];
    assert_eq!(rows, expected);
    assert!(commands.next().is_none(), "a command that is not tested");
}
