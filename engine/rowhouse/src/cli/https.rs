//! The flags of `serve` for HTTPS, and the arguments of `certificates` and `probe`.
//!
//! **Invariant:** a flag becomes a plain value of `server`, and is used for nothing else.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::builder::BoolishValueParser;
use clap::{Args, Subcommand};
use server::admin::host_name;

use super::running::{AdminTokenFlag, ListFormat, RunningServer};
use super::values;

/// HTTPS and the sources of certificates.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "HTTPS")]
pub struct HttpsFlags {
    /// Address and port to listen on for HTTPS, such as `[::]:443`
    ///
    /// Without this flag, the server serves HTTP only, for a proxy that terminates TLS. A systemd socket with the name `https` (`FileDescriptorName=`) does the same as this flag. A socket with the name `http-redirect` does the same as `--http-redirect`.
    ///
    /// Certificates come from a certificate authority (`--acme-contact`), from files (`--certificate`), or from both. A file takes precedence for the hosts that it names.
    #[arg(long, env = "ROWHOUSE_HTTPS", value_name = "ADDRESS", value_parser = values::full_address)]
    pub https: Option<SocketAddr>,
    /// Address and port of the redirect from HTTP to HTTPS, such as `[::]:80`
    ///
    /// The listener also responds to the HTTP challenges of the certificate authority.
    #[arg(long, env = "ROWHOUSE_HTTP_REDIRECT", value_name = "ADDRESS", value_parser = values::full_address)]
    pub http_redirect: Option<SocketAddr>,
    /// E-mail address for the certificate authority; turns on certificates by ACME
    ///
    /// Every host that a tenant claims gets a certificate as soon as the tenant's folder exists. No other name gets a certificate. With this flag, you agree to the terms of service of the CA.
    #[arg(long, env = "ROWHOUSE_ACME_CONTACT", value_name = "MAIL")]
    pub acme_contact: Option<String>,
    /// URL of the certificate authority's ACME directory (RFC 8555)
    #[arg(
        long,
        env = "ROWHOUSE_ACME_DIRECTORY",
        value_name = "URL",
        default_value = "https://acme-v02.api.letsencrypt.org/directory"
    )]
    pub acme_directory: String,
    /// Root certificates (PEM) for the CA's own HTTPS [default: Mozilla's]
    ///
    /// For a CA that browsers do not trust.
    #[arg(long, env = "ROWHOUSE_ACME_ROOT", value_name = "FILE")]
    pub acme_root: Option<PathBuf>,
    /// Key id of an account with the CA (external account binding)
    ///
    /// Some CAs, such as ZeroSSL, issue the id with the key of `--acme-eab-key` (RFC 8555, section 7.3.4).
    #[arg(
        long,
        env = "ROWHOUSE_ACME_EAB_KID",
        value_name = "ID",
        requires = "acme_eab_key"
    )]
    pub acme_eab_kid: Option<String>,
    /// Key of `--acme-eab-kid`, in base64url
    #[arg(
        long,
        env = "ROWHOUSE_ACME_EAB_KEY",
        value_name = "KEY",
        hide_env_values = true,
        requires = "acme_eab_kid"
    )]
    pub acme_eab_key: Option<String>,
    /// Order certificates for previews, too
    ///
    /// Without this flag, previews get no certificates from the CA, because CAs limit how many hosts of a domain get one in a week. A `--certificate` for `*.<domain>` covers previews without this flag.
    #[arg(long, env = "ROWHOUSE_ACME_PREVIEWS", value_parser = BoolishValueParser::new())]
    pub acme_previews: bool,
    /// Folder for certificates and the ACME account [default: below `--state`]
    ///
    /// The default is the folder `certificates` in the folder of `--state`. Back this folder up, unlike the rest of the state: the server does not order its certificates again.
    #[arg(long, env = "ROWHOUSE_CERTIFICATES", value_name = "DIR")]
    pub certificates: Option<PathBuf>,
    /// Certificate of your own with its chain (PEM), for all names in it
    ///
    /// The name `*.<domain>` covers all hosts of a domain. May be repeated, each with its own `--certificate-key`; in the variable, separate values by commas. The files are read again when they change.
    #[arg(
        long,
        env = "ROWHOUSE_CERTIFICATE",
        value_name = "FILE",
        value_delimiter = ',',
        requires = "certificate_key"
    )]
    pub certificate: Vec<PathBuf>,
    /// Key (PEM) of each `--certificate`, in the same order
    #[arg(
        long,
        env = "ROWHOUSE_CERTIFICATE_KEY",
        value_name = "FILE",
        value_delimiter = ',',
        requires = "certificate"
    )]
    pub certificate_key: Vec<PathBuf>,
    /// Require the PROXY protocol (version 1 or 2) from trusted proxies
    ///
    /// For load balancers that pass TCP through: the PROXY header names the visitor's address. Connections of a `--trusted-proxy` without the header are refused. From any other address, the header is not read.
    #[arg(long, env = "ROWHOUSE_PROXY_PROTOCOL", value_parser = BoolishValueParser::new())]
    pub proxy_protocol: bool,
}

/// The arguments of `certificates`.
#[derive(Debug, Clone, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct CertificatesArguments {
    /// The command for one host; without it, all hosts are listed.
    #[command(subcommand)]
    pub command: Option<CertificatesCommand>,
    /// Output format
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub format: ListFormat,
    /// The running server.
    #[command(flatten)]
    pub server: RunningServer,
}

/// The commands for the certificate of one host.
#[derive(Debug, Clone, Subcommand)]
pub enum CertificatesCommand {
    /// Order a new certificate for a host now, and wait for it
    Renew(RenewArguments),
}

/// The arguments of `certificates renew`.
#[derive(Debug, Clone, Args)]
pub struct RenewArguments {
    /// Host that needs a new certificate
    #[arg(value_name = "HOST", value_parser = host_name)]
    pub host: String,
    /// The running server.
    #[command(flatten)]
    pub server: RunningServer,
    /// The token of commands.
    #[command(flatten)]
    pub token: AdminTokenFlag,
}

/// The arguments of `probe`.
#[derive(Debug, Clone, Args)]
pub struct ProbeArguments {
    /// The running server.
    #[command(flatten)]
    pub server: RunningServer,
    /// Address to check HTTPS at, too: the handshake and the certificate
    #[arg(long, value_name = "ADDRESS", requires = "host", value_parser = values::address)]
    pub https: Option<SocketAddr>,
    /// Host that the certificate must cover; may be repeated
    #[arg(long, value_name = "NAME", requires = "https")]
    pub host: Vec<String>,
    /// Root certificates (PEM) to trust [default: Mozilla's]
    #[arg(long, value_name = "FILE", requires = "https")]
    pub root: Option<PathBuf>,
}

#[cfg(test)]
mod tests {
    use clap::Command;

    use super::*;

    #[test]
    fn every_https_flag_has_its_variable() {
        let flags = HttpsFlags::augment_args(Command::new("serve"));
        let mut count = 0;
        for flag in flags.get_arguments() {
            let name = flag.get_long().expect("a name");
            let variable = format!("ROWHOUSE_{}", name.replace('-', "_").to_uppercase());
            let known = flag.get_env().and_then(|variable| variable.to_str());
            assert_eq!(known, Some(&*variable), "{name}");
            count += 1;
        }
        assert_eq!(count, 12);
    }
}
