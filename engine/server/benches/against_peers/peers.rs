//! The configurations of the other servers. Each sends the fields of [`FIELDS`] and a body that it chooses by `accept-encoding`, keeps its files open or in memory if it can, and has one thread.

use std::fs;
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::process::{Command, Stdio};

use crate::client::HOST;
use crate::process::{Server, on_first_core};
use crate::row::{PAGES, Protocol, Row};

/// The header fields of a real page.
pub const FIELDS: [(&str, &str); 11] = [
    ("content-type", "text/html; charset=utf-8"),
    ("cache-control", "public, max-age=0, must-revalidate"),
    ("cache-tag", "bluedoor,bluedoor/terms"),
    (
        "content-security-policy",
        "default-src 'none'; script-src 'self' 'sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU='; worker-src 'none'; style-src 'self' 'sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU='; img-src 'self'; font-src 'self'; connect-src 'self'; manifest-src 'self'; form-action 'self' mailto:; base-uri 'none'; object-src 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none', script-src *:*/assets/ 'sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU='",
    ),
    ("cross-origin-opener-policy", "same-origin"),
    ("cross-origin-resource-policy", "same-site"),
    (
        "permissions-policy",
        "camera=(), display-capture=(), geolocation=(), microphone=(), payment=(), usb=(), browsing-topics=()",
    ),
    ("referrer-policy", "strict-origin-when-cross-origin"),
    ("strict-transport-security", "max-age=63072000"),
    ("x-content-type-options", "nosniff"),
    ("x-frame-options", "DENY"),
];
const NGINX_LOG: &str = r#"log_format json escape=json '{"timestamp":"$time_iso8601","tenant":"$host","method":"$request_method","route":"$uri","status":$status,"bytes":$body_bytes_sent,"encoding":"$sent_http_content_encoding","duration_us":$request_time,"request_id":"$request_id"}'; access_log access.log json buffer=16k flush=1s;"#;
const H2O_LOG: &str = r#"{"timestamp":"%{%Y-%m-%dT%H:%M:%S%z}t","tenant":"%V","method":"%m","route":"%U","status":%s,"bytes":%b,"encoding":"%{content-encoding}o","duration_us":%{duration}x,"request_id":"%{x-request-id}o"}"#;
/// For servers that cannot make one.
const REQUEST_ID: &str = "0123456789abcdef-0123";

/// Starts the peer `name` for a row.
pub fn start(name: &'static str, row: &Row, folder: &Path) -> Server {
    // The port was free a moment ago.
    let free = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = free.local_addr().unwrap();
    drop(free);
    let (arguments, configuration): (&[&str], _) = match name {
        "nginx" => (&["-c"], nginx(row, folder, address)),
        "h2o" => (&["-m", "worker", "-c"], h2o(row, folder, address)),
        "caddy" => (
            &["run", "--adapter", "caddyfile", "--config"],
            caddy(row, folder, address),
        ),
        _ => (&["--config-file"], static_web_server(folder, address)),
    };
    let ending = match name {
        "static-web-server" => "toml",
        _ => "conf",
    };
    let path = folder.join(format!("{name}.{}.{ending}", row.name));
    fs::write(&path, configuration).unwrap();
    let mut command = on_first_core();
    command.arg(name).args(arguments).arg(path);
    command
        .env("XDG_DATA_HOME", folder)
        .env("XDG_CONFIG_HOME", folder);
    command.stdout(Stdio::null()).stderr(Stdio::null());
    Server::of(name, &mut command, address)
}

/// Returns the version of an installed program, or `None` if it is not installed.
pub fn version(program: &str) -> Option<String> {
    let flag = match program {
        "nginx" => "-v",
        "caddy" => "version",
        _ => "--version",
    };
    let output = Command::new(program).arg(flag).output().ok()?;
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8_lossy(&text);
    Some(text.lines().next().unwrap_or_default().to_owned())
}

/// Writes the files that the peers send.
pub fn write_pages(folder: &Path) {
    fs::create_dir_all(folder.join("pages")).unwrap();
    for page in PAGES {
        let path = folder.join("pages").join(&page.path[1..]);
        if page.is_compressed {
            fs::write(path.with_extension("gz"), page.body()).unwrap();
            fs::write(path, vec![b'x'; 4 * page.bytes]).unwrap();
        } else {
            fs::write(path, page.body()).unwrap();
        }
    }
}

fn fields(line: impl Fn(&str, &str) -> String) -> String {
    let fields = FIELDS[1..].iter();
    fields.map(|(name, value)| line(name, value)).collect()
}

fn nginx(row: &Row, folder: &Path, address: SocketAddr) -> String {
    let here = folder.display();
    let log = match row.has_log {
        true => NGINX_LOG.replace("access.log", &format!("{here}/nginx.log")),
        false => "access_log off;".to_owned(),
    };
    let protocol = match row.protocol {
        Protocol::Http1 => "",
        Protocol::Http1Tls => "ssl",
        Protocol::Http2 => "http2",
        Protocol::Http2Tls => "ssl http2",
    };
    let tls = match row.protocol.is_tls() {
        true => format!(
            "ssl_certificate {here}/chain.pem; ssl_certificate_key {here}/key.pem; ssl_protocols TLSv1.3;"
        ),
        false => String::new(),
    };
    let fields = fields(|name, value| format!("add_header {name} \"{value}\";\n"));
    // A small file costs less without `sendfile`, a large file with it.
    format!(
        "daemon off; master_process off; pid {here}/nginx.pid; error_log {here}/nginx.error;
        events {{ worker_connections 16384; }}
        http {{
          {log} server_tokens off; keepalive_requests 1000000000; keepalive_timeout 130s;
          default_type text/html; charset utf-8;
          client_body_temp_path {here}/b; proxy_temp_path {here}/p; fastcgi_temp_path {here}/f;
          uwsgi_temp_path {here}/u; scgi_temp_path {here}/s;
          open_file_cache max=1000 inactive=1h; open_file_cache_valid 1h; open_file_cache_errors on;
          server {{
            listen {address} {protocol}; root {here}/pages; {tls}
            gzip_static on; gzip_vary on; max_ranges 0; if_modified_since off;
            sendfile off; tcp_nopush off;
            location /large {{ sendfile on; tcp_nopush on; }}
            add_header last-modified \"\"; add_header x-request-id $request_id;
            {fields}
          }}
        }}"
    )
}

fn h2o(row: &Row, folder: &Path, address: SocketAddr) -> String {
    let (here, port) = (folder.display(), address.port());
    let compressed = if row.page.is_compressed { "ON" } else { "OFF" };
    let log = match row.has_log {
        true => format!("access-log: {{path: {here}/h2o.log, format: '{H2O_LOG}'}}"),
        false => String::new(),
    };
    let tls = match row.protocol.is_tls() {
        true => format!(", ssl: {{certificate-file: {here}/chain.pem, key-file: {here}/key.pem}}"),
        false => String::new(),
    };
    let fields = fields(|name, value| format!("header.add: \"{name}: {value}\"\n"));
    format!(
        "user: root
num-threads: 1
max-connections: 16384
server-name: h2o
pid-file: {here}/h2o.pid
error-log: {here}/h2o.error
http1-request-timeout: 130
http2-idle-timeout: 130
file.mime.setdefaulttype: \"text/html; charset=utf-8\"
file.send-compressed: {compressed}
listen: {{host: 127.0.0.1, port: {port}{tls}}}
{log}
header.add: \"x-request-id: {REQUEST_ID}\"
{fields}
hosts:
  default:
    paths:
      /: {{file.dir: {here}/pages}}
"
    )
}

fn caddy(row: &Row, folder: &Path, address: SocketAddr) -> String {
    let (here, ip, port) = (folder.display(), address.ip(), address.port());
    let (scheme, tls) = match row.protocol.is_tls() {
        true => (
            "https",
            format!("tls {here}/chain.pem {here}/key.pem {{\n protocols tls1.3\n }}"),
        ),
        false => ("http", String::new()),
    };
    let fields = fields(|name, value| format!("{name} \"{value}\"\n"));
    let content_type = FIELDS[0].1;
    format!(
        "{{
          admin off
          auto_https off
          log {{
            output discard
          }}
          servers {{
            protocols h1 h2 h2c
          }}
        }}
        {scheme}://{HOST}:{port} {{
          bind {ip}
          {tls}
          root * {here}/pages
          header {{
            content-type \"{content_type}\"
            x-request-id {{http.request.uuid}}
            {fields}
          }}
          file_server {{
            precompressed gzip
          }}
        }}"
    )
}

fn static_web_server(folder: &Path, address: SocketAddr) -> String {
    let (here, ip, port) = (folder.display(), address.ip(), address.port());
    let fields = fields(|name, value| format!("{name} = \"{value}\"\n"));
    let content_type = FIELDS[0].1;
    format!(
        "[general]
host = \"{ip}\"
port = {port}
root = \"{here}/pages\"
log-level = \"error\"
cache-control-headers = false
compression = false
compression-static = true
security-headers = false
threads-multiplier = 1
[advanced]
[[advanced.headers]]
source = \"**/*\"
[advanced.headers.headers]
content-type = \"{content_type}\"
x-request-id = \"{REQUEST_ID}\"
{fields}"
    )
}
