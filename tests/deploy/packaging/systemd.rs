//! `deploy/systemd/`: the units parse, agree with each other, and restrict all that the program does not need.

use std::fs;

use rowhouse_tests::binary;
use tempfile::TempDir;

use crate::support::{is_there, text, tool};

const SERVICE: &str = "systemd/rowhouse.service";
const SOCKET: &str = "systemd/rowhouse.socket";
const SECURE_SOCKETS: [&str; 2] = [
    "systemd/rowhouse-https.socket",
    "systemd/rowhouse-http-redirect.socket",
];

/// Returns the values of a key, in order.
fn values(unit: &str, key: &str) -> Vec<String> {
    text(unit)
        .lines()
        .filter_map(|line| line.split_once('='))
        .filter(|(name, _)| *name == key)
        .map(|(_, value)| value.to_owned())
        .collect()
}

fn value(unit: &str, key: &str) -> String {
    let mut all = values(unit, key);
    assert_eq!(all.len(), 1, "{unit}: `{key}` stands once: {all:?}");
    all.remove(0)
}

/// Returns a variable of the service's environment.
fn variable(name: &str) -> String {
    values(SERVICE, "Environment")
        .iter()
        .filter_map(|setting| setting.split_once('='))
        .find(|(variable, _)| *variable == name)
        .map(|(_, value)| value.to_owned())
        .unwrap_or_else(|| panic!("{SERVICE} does not set {name}"))
}

#[test]
fn service_has_exposure_below_one_and_a_half() {
    if !is_there("systemd-analyze") {
        return;
    }
    // The threshold is in tenths. Above it, the exit code is not 0.
    let (content, said) = tool(
        "systemd-analyze",
        &[
            "security",
            "--offline=true",
            "--threshold=15",
            "--no-pager",
            SERVICE,
        ],
    );
    assert!(content, "{said}");
}

#[test]
fn systemd_accepts_units() {
    if !is_there("systemd-analyze") {
        return;
    }
    let folder = TempDir::new().expect("a folder");
    let program = binary().display().to_string();
    // A copy, since `verify` needs the program at the path in the unit.
    let service = text(SERVICE).replace(
        "ExecStart=/usr/local/bin/rowhouse",
        &format!("ExecStart={program}"),
    );
    assert!(service.contains(&program));
    fs::write(folder.path().join("rowhouse.service"), service).expect("a file");
    fs::write(folder.path().join("rowhouse.socket"), text(SOCKET)).expect("a file");
    for unit in SECURE_SOCKETS {
        let name = unit.strip_prefix("systemd/").expect("the folder");
        fs::write(folder.path().join(name), text(unit)).expect("a file");
    }
    let additions = folder.path().join("rowhouse.service.d");
    fs::create_dir(&additions).expect("a folder");
    for name in ["https.conf", "fleet.conf"] {
        let addition = text(&format!("systemd/{name}"));
        fs::write(additions.join(name), addition).expect("a file");
    }
    let units = [
        "rowhouse.service",
        "rowhouse.socket",
        "rowhouse-https.socket",
        "rowhouse-http-redirect.socket",
    ]
    .map(|unit| folder.path().join(unit).display().to_string());
    let arguments = ["verify", "--man=no"].map(ToOwned::to_owned);
    let (content, said) = tool("systemd-analyze", &[&arguments[..], &units[..]].concat());
    assert!(content, "{said}");
    assert!(!said.contains("rowhouse."), "{said}");
}

#[test]
fn service_has_longer_stop_timeout_than_grace() {
    let grace: u32 = variable("ROWHOUSE_GRACE").parse().expect("seconds");
    let stop: u32 = value(SERVICE, "TimeoutStopSec").parse().expect("seconds");
    assert_eq!(stop, grace + 5);
}

#[test]
fn service_allows_what_its_variables_need() {
    let tenants = variable("ROWHOUSE_TENANTS");
    assert_eq!(value(SERVICE, "ReadOnlyPaths"), tenants);
    assert_eq!(value(SERVICE, "RequiresMountsFor"), tenants);
    let admin = variable("ROWHOUSE_ADMIN");
    let (address, port) = admin.rsplit_once(':').expect("a port");
    assert_eq!(address, "127.0.0.1", "the admin listener is local");
    assert_eq!(
        value(SERVICE, "SocketBindAllow"),
        format!("ipv4:tcp:{port}")
    );
    assert!(value(SERVICE, "ExecReload").contains("-HUP $MAINPID"));
    assert_eq!(value(SERVICE, "DynamicUser"), "yes");
    assert!(value(SERVICE, "MemoryMax").ends_with('M'));
}

#[test]
fn fleet_has_a_bucket_and_its_key_and_no_folder_of_tenants() {
    const FLEET: &str = "systemd/fleet.conf";
    assert_eq!(value(FLEET, "ReadOnlyPaths"), "");
    assert_eq!(value(FLEET, "IPAddressDeny"), "");
    assert_eq!(value(FLEET, "EnvironmentFile"), "/etc/rowhouse/store.env");
    let credential = value(FLEET, "LoadCredential");
    let (name, _) = credential.split_once(':').expect("a name");
    let variables = values(FLEET, "Environment");
    let key_file = format!("ROWHOUSE_STORE_KEY_FILE=%d/{name}");
    assert!(variables.contains(&key_file), "{variables:?}");
    let is_store = |variable: &String| variable.starts_with("ROWHOUSE_STORE=s3://");
    assert!(variables.iter().any(is_store), "{variables:?}");
    assert!(!variable("ROWHOUSE_STATE").is_empty());
}

#[test]
fn service_requires_its_socket() {
    assert_eq!(value(SERVICE, "Requires"), "rowhouse.socket");
    assert!(value(SERVICE, "After").contains("rowhouse.socket"));
    assert_eq!(values(SOCKET, "ListenStream").len(), 1);
    assert_eq!(values(SOCKET, "Accept"), Vec::<String>::new());
}

/// The program recognises the sockets by these names only.
#[test]
fn https_sockets_have_names_of_program() {
    let names = SECURE_SOCKETS.map(|socket| value(socket, "FileDescriptorName"));
    assert_eq!(names, ["https", "http-redirect"]);
    for socket in SECURE_SOCKETS {
        assert_eq!(value(socket, "Service"), "rowhouse.service");
        let name = socket.strip_prefix("systemd/").expect("the folder");
        let requires = value("systemd/https.conf", "Requires");
        assert!(requires.contains(name), "{requires}");
    }
}
