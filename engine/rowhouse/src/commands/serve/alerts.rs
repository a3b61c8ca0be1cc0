//! The sender of alerts, as the flags for alerts describe it.
//!
//! **Invariant:** an error does not quote the URL.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use release::store::Store;

use crate::cli::ServeArguments;
use server::admin::Admin;
use server::admin::alerts::{self, AlertSettings, AlertSources, Webhook};
use server::settings::operator_file;

/// Returns the settings of the receiver; `None` without `--alert-webhook`.
pub(crate) fn settings(arguments: &ServeArguments) -> anyhow::Result<Option<AlertSettings>> {
    let flags = &arguments.alerts;
    let Some(url) = &flags.alert_webhook else {
        return Ok(None);
    };
    let webhook = Webhook::new(&url.0, flags.alert_format.into());
    let roots = flags.alert_root.as_ref().map(|path| {
        operator_file::read(path)
            .with_context(|| format!("cannot read `{}` of `--alert-root`", path.display()))
    });
    Ok(Some(AlertSettings {
        webhook: webhook.context("cannot use the URL of `--alert-webhook`")?,
        roots: roots.transpose()?,
        delay: Duration::from_secs(flags.alert_delay.into()),
        server: arguments.content.origin.domain().to_owned(),
    }))
}

/// Starts to send alerts, if there are settings.
pub(super) fn start(
    settings: Option<AlertSettings>,
    admin: &Admin,
    store: Option<Arc<Store>>,
) -> anyhow::Result<()> {
    let Some(settings) = settings else {
        return Ok(());
    };
    let sources = AlertSources {
        board: Arc::clone(&admin.board),
        snapshots: Arc::clone(&admin.snapshots),
        tls: admin.tls.clone(),
        memory: admin.memory,
        store,
    };
    alerts::start(settings, sources).context("cannot send alerts")
}
