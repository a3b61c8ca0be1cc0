//! Sends alerts to a webhook, for operators without Prometheus.
//!
//! ```text
//! conditions ──► plan ──► message ──► webhook ──► the receiver
//!                 ▲                      │
//!                 └── delivered, failed ─┘   sender: the thread that moves values along the arrows
//! ```
//! The [`sender`] compares the current [conditions](super::conditions) with the alerts that the receiver has:
//! * An alert is sent once its condition has lasted for the delay, and resolved once the condition was gone for the delay.
//! * The receiver gets each alert once, also after a restart: the state has the alerts that were sent.
//! * If the receiver fails, all alerts wait: from a second to five minutes, or as long as the receiver's `Retry-After` says.
//! * The number of alerts is limited. Many tenants with errors are counted in one alert.
//!
//! A receiver may get an alert twice if its response is lost, or if the process ends before the state is written.
//!
//! **Invariant:** [`plan`] decides, without clock and network. The URL of the webhook is a secret; only its scheme and host are shown.

mod message;
mod plan;
mod sender;
mod webhook;

pub use self::message::AlertFormat;
pub use self::sender::{AlertError, AlertSettings, AlertSources, start};
pub use self::webhook::{Webhook, WebhookError};
