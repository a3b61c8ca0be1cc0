//! Sockets, certificates and the ACME client, as the flags for HTTPS describe them.
//!
//! **Invariant:** checks that the flags fit together before the server starts.

use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context as _, bail, ensure};
use content::address::Origin;
use http::HeaderValue;

use crate::cli::ServeArguments;
use crate::cli::https::HttpsFlags;
use crate::commands::serve::takeover::successor::socket_for;
use server::acme::{self, AcmeSettings, ExternalAccount, RenewalRequests, SharedStore};
use server::listen::{Listeners, bind, inherited};
use server::response::redirect::is_loopback;
use server::settings::operator_file;
use server::snapshot_store::SnapshotStore;
use server::tls::certificate_store::CertificateStore;
use server::tls::files::{CertificateFile, FileCertificates};
use server::tls::{SharedChallenges, Tls};

/// Returns the sockets for visitors, and whether a service manager opened them (`LISTEN_FDS`). Its sockets replace the sockets of the flags. `received`: the sockets of a server from which this process takes over.
pub(crate) fn listeners(
    arguments: &ServeArguments,
    received: &mut Listeners,
) -> anyhow::Result<(Listeners, bool)> {
    let mut listeners = inherited()?;
    let is_managed = !listeners.is_empty();
    if !is_managed {
        let socket = listen(&mut received.clear, arguments.listen, "--listen")?;
        listeners.clear.push(socket);
    }
    let flags = &arguments.https;
    for (sockets, received, address, flag) in [
        (
            &mut listeners.tls,
            &mut received.tls,
            flags.https,
            "--https",
        ),
        (
            &mut listeners.redirect,
            &mut received.redirect,
            flags.http_redirect,
            "--http-redirect",
        ),
    ] {
        if let Some(address) = address.filter(|_| sockets.is_empty()) {
            sockets.push(listen(received, address, flag)?);
        }
    }
    Ok((listeners, is_managed))
}

/// Listens on the address of `flag`, or uses the socket of `received` that listens there.
pub(crate) fn listen(
    received: &mut Vec<TcpListener>,
    address: SocketAddr,
    flag: &str,
) -> anyhow::Result<TcpListener> {
    if let Some(socket) = socket_for(received, address) {
        return Ok(socket);
    }
    bind(address).with_context(|| format!("cannot use the address of `{flag}`"))
}

/// Returns the TLS configuration with the certificates from files; `None` without a socket for HTTPS. `shared` has the challenges of the other replicas of a fleet.
pub(crate) fn tls(
    arguments: &ServeArguments,
    listeners: &Listeners,
    shared: Option<Arc<dyn SharedStore>>,
) -> anyhow::Result<Option<Arc<Tls>>> {
    let flags = &arguments.https;
    if listeners.tls.is_empty() {
        let needs_https = flags.acme_contact.is_some() || !flags.certificate.is_empty();
        ensure!(
            !needs_https && listeners.redirect.is_empty(),
            "certificates and `--http-redirect` need HTTPS: add `--https ADDRESS`"
        );
        return Ok(None);
    }
    let origin = &arguments.content.origin;
    ensure!(
        origin.is_secure(),
        "`--https` needs an `--origin` that begins with `https://`, and `{origin}` does not: write the URL that visitors type"
    );
    ensure!(
        flags.acme_contact.is_some() || !flags.certificate.is_empty(),
        "`--https` needs certificates: add `--acme-contact MAIL` to order them from a certificate authority, or `--certificate FILE` with `--certificate-key FILE`"
    );
    let certificates = Arc::new(CertificateStore::default());
    let files = FileCertificates::read(files(flags)?, Arc::clone(&certificates))?;
    files
        .watch()
        .context("cannot watch the certificate files")?;
    let mut tls = Tls::new(certificates, origin.port()).context("cannot configure TLS")?;
    tls.shared = shared.map(SharedChallenges::new);
    Ok(Some(Arc::new(tls)))
}

/// Starts the ACME client if `--acme-contact` is set.
pub(crate) fn start_acme(
    arguments: &ServeArguments,
    listeners: &Listeners,
    tls: &Tls,
    renewals: &RenewalRequests,
    snapshots: &Arc<SnapshotStore>,
    shared: Option<Arc<dyn SharedStore>>,
) -> anyhow::Result<()> {
    let flags = &arguments.https;
    let Some(contact) = flags.acme_contact.clone() else {
        return Ok(());
    };
    let below_state = || Some(arguments.state.as_ref()?.join("certificates"));
    let Some(folder) = flags.certificates.clone().or_else(below_state) else {
        bail!(
            "`--acme-contact` needs a persistent folder, since CAs issue the same certificate only a few times: add `--state DIR` or `--certificates DIR`"
        );
    };
    let roots = flags.acme_root.as_ref();
    let roots = roots.map(|path| {
        operator_file::read(path).with_context(|| format!("cannot read `{}`", path.display()))
    });
    let settings = AcmeSettings {
        directory: flags.acme_directory.clone(),
        roots: roots.transpose()?,
        contact,
        external_account: external_account(flags)?,
        folder,
        http: !listeners.redirect.is_empty(),
        includes_previews: flags.acme_previews,
        shared,
    };
    acme::start(settings, Arc::clone(snapshots), tls, renewals)?;
    Ok(())
}

fn files(flags: &HttpsFlags) -> anyhow::Result<Vec<CertificateFile>> {
    let (certificates, keys) = (&flags.certificate, &flags.certificate_key);
    ensure!(
        certificates.len() == keys.len(),
        "each `--certificate` needs its `--certificate-key`: there are {} certificates and {} keys",
        certificates.len(),
        keys.len()
    );
    let pairs = certificates.iter().zip(keys);
    let file = |(certificate, key): (&PathBuf, &PathBuf)| CertificateFile {
        certificate: certificate.clone(),
        key: key.clone(),
    };
    Ok(pairs.map(file).collect())
}

fn external_account(flags: &HttpsFlags) -> anyhow::Result<Option<ExternalAccount>> {
    let Some((id, key)) = flags.acme_eab_kid.as_ref().zip(flags.acme_eab_key.as_ref()) else {
        return Ok(None);
    };
    let key = acme::decoded_key(key).context("`--acme-eab-key` is not valid base64url")?;
    Ok(Some(ExternalAccount {
        id: id.clone(),
        key,
    }))
}

/// Returns the addresses of sockets, for the log and the greeting.
pub(crate) fn addresses(sockets: &[TcpListener]) -> std::io::Result<Vec<SocketAddr>> {
    sockets.iter().map(TcpListener::local_addr).collect()
}

/// Returns the origin to which requests for other names of this machine, such as `127.0.0.1`, are redirected.
///
/// `None` unless the origin is a name of this machine, and only this machine can reach all of `sockets`: visitors from outside never named the loopback address, and learn nothing about the server.
pub(crate) fn loopback_origin(origin: &Origin, sockets: &[SocketAddr]) -> Option<HeaderValue> {
    let domain = origin.domain();
    let is_local = is_loopback(domain) || domain.ends_with(".localhost");
    let is_private = sockets.iter().all(|socket| socket.ip().is_loopback());
    let origin = HeaderValue::from_str(&origin.to_string()).ok()?;
    (is_local && is_private).then_some(origin)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_origin_needs_local_origin_and_loopback_sockets() {
        let found = |origin: &str, sockets: &[&str]| {
            let sockets = sockets.iter().map(|socket| socket.parse().unwrap());
            let sockets: Vec<SocketAddr> = sockets.collect();
            loopback_origin(&origin.parse().unwrap(), &sockets)
        };
        let local = ["127.0.0.1:8080", "[::1]:8080"];
        for origin in [
            "http://localhost:8080",
            "http://studio.localhost:8080",
            "http://127.0.0.1:8080",
            "http://[::1]:8080",
        ] {
            assert_eq!(found(origin, &local).unwrap(), origin);
            assert_eq!(found(origin, &["0.0.0.0:8080"]), None, "{origin}");
            assert_eq!(found(origin, &[local[0], "[::]:8080"]), None, "{origin}");
        }
        assert_eq!(found("https://studio.example", &local), None);
        assert_eq!(found("http://192.168.1.5:8080", &local), None);
    }
}
