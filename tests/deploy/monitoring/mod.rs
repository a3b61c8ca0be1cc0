//! The dashboard, the alerts and the metrics that both use.

mod alert_rules;
mod dashboard;
mod metric_names;
