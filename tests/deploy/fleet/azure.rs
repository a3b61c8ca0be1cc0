//! Publishing to and following Azure Blob Storage, as its emulator Azurite answers.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::process::Command;

use rowhouse_tests::{binary, reserved_address};
use tempfile::TempDir;

use crate::fleet::replicas::{readiness, wait_for_text};
use crate::support::{Program, Rowhouse, is_there, run, tenant, wait_for};

/// The right to create a container until the year 2100: a shared access signature with the public key of the emulator.
const SIGNATURE: &str = "sv=2019-12-12&ss=b&srt=c&sp=rwc&se=2100-01-01T00%3A00%3A00Z&sig=D%2BofTknlmETveoo1pYhCk5GObPpv4RSyFlK7deSW2tU%3D";

/// Creates the container `fleet`, and returns whether the emulator did.
fn create_container(address: SocketAddr) -> Option<()> {
    let mut stream = TcpStream::connect(address).ok()?;
    let request = format!(
        "PUT /devstoreaccount1/fleet?restype=container&{SIGNATURE} HTTP/1.1\r\nhost: {address}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    answer.starts_with("HTTP/1.1 201").then_some(())
}

#[test]
fn replica_follows_a_container_of_azure() {
    if !is_there("azurite-blob") {
        return;
    }
    let address = reserved_address();
    let mut store = Program::start(
        Command::new("azurite-blob")
            .args(["--silent", "--inMemoryPersistence", "--disableTelemetry"])
            // The client is newer than the emulator.
            .args(["--skipApiVersionCheck", "--blobHost=127.0.0.1"])
            .arg(format!("--blobPort={}", address.port())),
    );
    wait_for("a container", || {
        store.must_run();
        create_container(address)
    });
    let folder = TempDir::new().expect("a folder");
    let mill = folder.path().join("tenants/mill");
    tenant(&mill, "mill", "");
    let rowhouse = |name: &str| {
        let mut command = Command::new(binary());
        command
            .arg(name)
            .current_dir(folder.path())
            .env("AZURE_STORAGE_USE_EMULATOR", "true")
            .env("AZURITE_BLOB_STORAGE_URL", format!("http://{address}"))
            .env("ROWHOUSE_STORE", "az://fleet/sites");
        command
    };
    let publish = |expected: &str| {
        let (is_published, said) = run(&mut rowhouse("publish"));
        assert!(is_published && said.contains(expected), "{said}");
    };
    // The first publication proves that the store honours conditional writes.
    publish("mill  version 1  ");
    publish("mill  version 1  unchanged");
    let mut serve = rowhouse("serve");
    serve
        .args(["--listen=127.0.0.1:0", "--admin=127.0.0.1:0"])
        .args(["--state=state", "--origin=http://localhost"]);
    let server = Rowhouse::start_with(&mut serve);
    wait_for_text(&server, "mill", "This is the house of mill.");
    let page = "---\ntitle: mill\n---\nVersion 2\n";
    fs::write(mill.join("pages/index.md"), page).expect("a file");
    publish("mill  version 2  ");
    wait_for_text(&server, "mill", "Version 2");
    assert_eq!(readiness(&server).1, "ready\n");
}
