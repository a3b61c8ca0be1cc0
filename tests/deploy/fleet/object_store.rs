//! SeaweedFS, an object store with the interface of S3, on free ports of this machine.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use bucket::store::Bucket;
use rowhouse_tests::reserved_address;
use tempfile::TempDir;

use crate::support::{Program, is_there, wait_for};

/// The name of the bucket.
const BUCKET: &str = "fleet";

const ACCESS_KEY: &str = "rowhouse";
const SECRET_KEY: &str = "a secret of this test";

/// The user of the store.
const USERS: &str = r#"{"identities": [{
  "name": "tests",
  "credentials": [{"accessKey": "rowhouse", "secretKey": "a secret of this test"}],
  "actions": ["Admin", "Read", "Write", "List"]
}]}"#;

/// The flags of SeaweedFS that name a port. Each port for HTTP has one for gRPC.
const PORTS: [&str; 8] = [
    "-master.port",
    "-master.port.grpc",
    "-volume.port",
    "-volume.port.grpc",
    "-filer.port",
    "-filer.port.grpc",
    "-s3.port",
    "-s3.port.grpc",
];

/// The folder with the names of all objects.
const NAMES: &str = "filerldb2";

/// The places of the ports of the file interface and of S3 in [`PORTS`].
const FILES: usize = 4;
const S3: usize = 6;

/// A running object store with an empty bucket, which ends with the test.
#[derive(Debug)]
pub(crate) struct ObjectStore {
    /// `None` while the store is stopped.
    program: Option<Program>,
    folder: TempDir,
    ports: [SocketAddr; 8],
}

/// Removes the state of the master, but not the names of the objects beside it. A master with the state of a killed one waits for its peers. The other parts report to the new master what they have.
fn remove_master(folder: &Path) {
    fs::create_dir_all(folder).expect("a folder");
    for entry in fs::read_dir(folder).expect("a folder") {
        let entry = entry.expect("an entry");
        if entry.file_name() != NAMES {
            fs::remove_dir_all(entry.path()).expect("removed");
        }
    }
}

impl ObjectStore {
    /// Starts a store, or returns `None` if the test is skipped because the program is missing.
    pub(crate) fn start() -> Option<Self> {
        is_there("weed").then(|| {
            let folder = TempDir::new().expect("a folder");
            fs::create_dir(folder.path().join("data")).expect("a folder");
            fs::write(folder.path().join("users.json"), USERS).expect("a file");
            let mut store = Self {
                program: None,
                folder,
                ports: PORTS.map(|_| reserved_address()),
            };
            store.restart();
            store
        })
    }

    /// Stops the store. Its objects stay.
    pub(crate) fn stop(&mut self) {
        self.program = None;
    }

    /// Starts the store again, and waits until the bucket can be used.
    pub(crate) fn restart(&mut self) {
        let master = self.folder.path().join("master");
        remove_master(&master);
        let data = self.folder.path().join("data");
        let users = self.folder.path().join("users.json");
        let mut command = Command::new("weed");
        command
            .arg("server")
            .args(["-ip=127.0.0.1", "-ip.bind=127.0.0.1"])
            .args(["-s3", "-s3.port.iceberg=0", "-s3.port.lance=0"])
            .args(["-master.telemetry=false", "-master.volumeSizeLimitMB=64"])
            .args([
                "-master.electionTimeout=1s",
                "-master.heartbeatInterval=100ms",
            ])
            .arg("-volume.max=64")
            .arg(format!("-master.dir={}", master.display()))
            .arg(format!("-dir={}", data.display()))
            .arg(format!("-s3.config={}", users.display()));
        for (flag, address) in PORTS.iter().zip(self.ports) {
            command.arg(format!("{flag}={}", address.port()));
        }
        let mut program = Program::start(&mut command);
        wait_for("a ready object store", || {
            program.must_run();
            self.create_bucket()
        });
        wait_for("an open S3 port", || {
            program.must_run();
            TcpStream::connect(self.s3()).ok()
        });
        self.program = Some(program);
    }

    /// Creates the bucket, which is a folder of the file interface.
    fn create_bucket(&self) -> Option<()> {
        let mut stream = TcpStream::connect(self.ports[FILES]).ok()?;
        let timeout = Some(Duration::from_secs(10));
        stream.set_read_timeout(timeout).expect("a timeout");
        let request = format!(
            "POST /buckets/{BUCKET}/ HTTP/1.1\r\nhost: localhost\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
        );
        stream.write_all(request.as_bytes()).ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).ok()?;
        // 409: the bucket exists since an earlier start.
        let is_there = ["201", "409"]
            .iter()
            .any(|status| answer.starts_with(&format!("HTTP/1.1 {status}")));
        is_there.then_some(())
    }

    /// Returns the address of the S3 interface.
    pub(crate) fn s3(&self) -> SocketAddr {
        self.ports[S3]
    }

    /// Returns the address of the bucket with this prefix.
    pub(crate) fn address(&self, prefix: &str) -> String {
        format!("s3://{BUCKET}/{prefix}")
    }

    /// Returns the variables with which a program finds the store and its credentials.
    pub(crate) fn variables(&self) -> Vec<(String, String)> {
        let endpoint = format!("http://{}", self.s3());
        [
            ("AWS_ENDPOINT_URL", &*endpoint),
            ("AWS_ALLOW_HTTP", "true"),
            ("AWS_REGION", "us-east-1"),
            ("AWS_ACCESS_KEY_ID", ACCESS_KEY),
            ("AWS_SECRET_ACCESS_KEY", SECRET_KEY),
        ]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .to_vec()
    }

    /// Returns the bucket with this prefix, for requests of the test itself.
    pub(crate) fn bucket(&self, prefix: &str) -> Bucket {
        Bucket::open_with(&self.address(prefix), self.variables()).expect("an address")
    }
}
