//! The flags of `serve` for alerts.
//!
//! **Invariant:** a flag becomes a plain value of `server`, and is used for nothing else.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use server::admin::alerts::AlertFormat;

use crate::cli::values;

/// The receiver of alerts.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Alerts")]
pub struct AlertFlags {
    /// URL that gets a message when something needs an operator, and when it ends
    ///
    /// Messages tell of a state that cannot be written, certificates that are missing, fail or expire soon, tenants with errors, removed tenants, memory near its limit, and changes that are not noticed. The URL is a secret: set it in the variable, since all users of a machine can see flags. The log shows only scheme and host.
    // The URL is parsed later, since the messages of the parser quote the value.
    #[arg(
        long,
        env = "ROWHOUSE_ALERT_WEBHOOK",
        value_name = "URL",
        hide_env_values = true
    )]
    pub alert_webhook: Option<SecretUrl>,
    /// Format of the messages of `--alert-webhook`
    #[arg(
        long,
        env = "ROWHOUSE_ALERT_FORMAT",
        value_name = "FORMAT",
        default_value = "json",
        requires = "alert_webhook"
    )]
    pub alert_format: AlertFormatFlag,
    /// Time that a problem must last before its alert is sent
    ///
    /// A problem that is gone for the same time is resolved. A problem that comes and goes within this time is one alert, or none.
    #[arg(
        long,
        env = "ROWHOUSE_ALERT_DELAY",
        value_name = "DURATION",
        default_value = "5m",
        value_parser = values::whole_seconds::<u32>
    )]
    pub alert_delay: u32,
    /// Root certificates (PEM) for HTTPS to the webhook [default: Mozilla's]
    #[arg(
        long,
        env = "ROWHOUSE_ALERT_ROOT",
        value_name = "FILE",
        requires = "alert_webhook"
    )]
    pub alert_root: Option<PathBuf>,
}

/// A URL that is never printed.
#[derive(Clone)]
pub struct SecretUrl(pub(crate) String);

impl From<String> for SecretUrl {
    fn from(url: String) -> Self {
        Self(url)
    }
}

impl std::fmt::Debug for SecretUrl {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("SecretUrl")
    }
}

/// The format of messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum AlertFormatFlag {
    /// A JSON object with all alerts, and with their text
    Json,
    /// An incoming webhook of Slack or Mattermost
    Slack,
    /// A topic of ntfy
    Ntfy,
    /// The API of Alertmanager, `/api/v2/alerts`
    Alertmanager,
}

impl From<AlertFormatFlag> for AlertFormat {
    fn from(format: AlertFormatFlag) -> Self {
        match format {
            AlertFormatFlag::Json => Self::Json,
            AlertFormatFlag::Slack => Self::Slack,
            AlertFormatFlag::Ntfy => Self::Ntfy,
            AlertFormatFlag::Alertmanager => Self::Alertmanager,
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Flags {
        #[command(flatten)]
        alerts: AlertFlags,
    }

    #[test]
    fn url_is_not_printed() {
        let url = "https://hooks.example/secret";
        let flags = Flags::try_parse_from(["rowhouse", "--alert-webhook", url]).unwrap();
        assert!(!format!("{flags:?}").contains("secret"));
        assert_eq!(flags.alerts.alert_webhook.unwrap().0, url);
    }

    #[test]
    fn format_needs_a_webhook() {
        let error = Flags::try_parse_from(["rowhouse", "--alert-format=ntfy"]).unwrap_err();
        assert!(error.to_string().contains("--alert-webhook"));
    }
}
