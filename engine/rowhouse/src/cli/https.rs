//! The flags of `serve` about HTTPS, and of the commands that look at it from outside.
//!
//! **Invariant:** what is here is turned into values of `server`, and used for nothing else.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;
use clap::builder::BoolishValueParser;

use super::running::{ListFormat, RunningServer};

/// HTTPS, and where certificates come from.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "HTTPS")]
pub struct HttpsFlags {
    /// The address and port to listen on for visitors over HTTPS, as in `[::]:443` [default: none, a proxy does it]
    ///
    /// A socket of systemd that is called `https` (`FileDescriptorName=`) does the same, and one that is called `http-redirect` stands for `--http-redirect`.
    ///
    /// Certificates come from an authority (`--acme-contact`), from files (`--certificate`), or both: then files go first.
    #[arg(long, env = "ROWHOUSE_HTTPS", value_name = "ADDRESS")]
    pub https: Option<SocketAddr>,
    /// The address and port to lead visitors from HTTP to HTTPS, as in `[::]:80`; it answers the authority's challenges, too
    #[arg(long, env = "ROWHOUSE_HTTP_REDIRECT", value_name = "ADDRESS")]
    pub http_redirect: Option<SocketAddr>,
    /// The e-mail address that the authority may write to; with it, certificates are requested
    ///
    /// Every host that a tenant claims gets one, from the moment at which its folder is there, and no other name does. By this you agree to the authority's terms of service.
    #[arg(long, env = "ROWHOUSE_ACME_CONTACT", value_name = "MAIL")]
    pub acme_contact: Option<String>,
    /// The authority's directory (ACME, RFC 8555)
    #[arg(
        long,
        env = "ROWHOUSE_ACME_DIRECTORY",
        value_name = "URL",
        default_value = "https://acme-v02.api.letsencrypt.org/directory"
    )]
    pub acme_directory: String,
    /// The roots of an authority that browsers do not know, for its own HTTPS, as PEM [default: those of Mozilla]
    #[arg(long, env = "ROWHOUSE_ACME_ROOT", value_name = "FILE")]
    pub acme_root: Option<PathBuf>,
    /// The id of an account with the authority's owner, as ZeroSSL gives one out (external account binding)
    #[arg(
        long,
        env = "ROWHOUSE_ACME_EAB_KID",
        value_name = "ID",
        requires = "acme_eab_key"
    )]
    pub acme_eab_kid: Option<String>,
    /// The key that comes with it, in base64url
    #[arg(
        long,
        env = "ROWHOUSE_ACME_EAB_KEY",
        value_name = "KEY",
        hide_env_values = true,
        requires = "acme_eab_kid"
    )]
    pub acme_eab_key: Option<String>,
    /// The folder for certificates and the account with the authority [default: `certificates` below `--state`]
    ///
    /// Unlike the rest of the state it is worth a backup: what is in it is not requested again.
    #[arg(long, env = "ROWHOUSE_CERTIFICATES", value_name = "DIR")]
    pub certificates: Option<PathBuf>,
    /// A certificate of your own with its chain, as PEM, for the names in it; `*.<domain>` is for all names of a domain
    ///
    /// May be given more than once, each with its `--certificate-key`; in the variable, separated by commas. The files are read again when they change.
    #[arg(
        long,
        env = "ROWHOUSE_CERTIFICATE",
        value_name = "FILE",
        value_delimiter = ',',
        requires = "certificate_key"
    )]
    pub certificate: Vec<PathBuf>,
    /// The key of that certificate, as PEM, in the same order
    #[arg(
        long,
        env = "ROWHOUSE_CERTIFICATE_KEY",
        value_name = "FILE",
        value_delimiter = ',',
        requires = "certificate"
    )]
    pub certificate_key: Vec<PathBuf>,
    /// Trusted proxies begin each connection with the PROXY protocol (version 1 or 2), which names the visitor
    ///
    /// For load balancers that pass TCP on. Connections of `--trusted-proxy` without it are refused then; it is not read from anybody else.
    #[arg(long, env = "ROWHOUSE_PROXY_PROTOCOL", value_parser = BoolishValueParser::new())]
    pub proxy_protocol: bool,
}

/// `certificates`.
#[derive(Debug, Clone, Args)]
pub struct CertificatesArguments {
    /// The form of the output
    #[arg(long, value_name = "FORM", default_value = "text")]
    pub format: ListFormat,
    /// The server.
    #[command(flatten)]
    pub server: RunningServer,
}

/// `probe`.
#[derive(Debug, Clone, Args)]
pub struct ProbeArguments {
    /// The server.
    #[command(flatten)]
    pub server: RunningServer,
    /// Look at this address of visitors, too: a handshake, and whether a browser would trust the certificate
    #[arg(long, value_name = "ADDRESS", requires = "host")]
    pub https: Option<SocketAddr>,
    /// The host that the certificate has to be good for; may be given more than once
    #[arg(long, value_name = "NAME", requires = "https")]
    pub host: Vec<String>,
    /// The roots to trust, as PEM [default: those of Mozilla]
    #[arg(long, value_name = "FILE", requires = "https")]
    pub root: Option<PathBuf>,
}

#[cfg(test)]
mod tests {
    use clap::Command;

    use super::*;

    #[test]
    fn every_flag_of_https_has_its_variable() {
        let flags = HttpsFlags::augment_args(Command::new("serve"));
        let mut count = 0;
        for flag in flags.get_arguments() {
            let name = flag.get_long().expect("a name");
            let variable = format!("ROWHOUSE_{}", name.replace('-', "_").to_uppercase());
            let known = flag.get_env().and_then(|variable| variable.to_str());
            assert_eq!(known, Some(&*variable), "{name}");
            count += 1;
        }
        assert_eq!(count, 11);
    }
}
