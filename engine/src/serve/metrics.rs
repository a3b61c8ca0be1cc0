//! The counters as Prometheus text.
//!
//! Requests only add to plain counters ([`Traffic`], [`Connections`](super::connections::Connections)); everything that has a name or a label is put together here, when somebody asks.
//! The number of series depends on the tenants alone: what names no known host is counted as `_unknown`, and what known hosts answer for no tenant as `_shared`.
//!
//! **Invariant:** never counts anything itself.

use std::fmt::Error;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, NoLabelSet, text};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::{Registry, Unit};

use super::shelf::{SHARED, Shelf, UNKNOWN};
use super::status::{State, StatusBoard};
use crate::snapshot::traffic::{LATENCY_BOUNDS, Traffic};

/// The media type of [`render`]'s text.
pub(super) const MEDIA_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// All counters in the OpenMetrics text format.
///
/// # Errors
/// Never, since text is written to memory; the encoder's trait has it so.
pub(super) fn render(shelf: &Arc<Shelf>, board: &Arc<StatusBoard>) -> Result<String, Error> {
    let mut registry = Registry::with_prefix("rowhouse");
    registry.register_collector(Box::new(Counters {
        shelf: Arc::clone(shelf),
        board: Arc::clone(board),
    }));
    let mut encoded = String::new();
    text::encode(&mut encoded, &registry)?;
    Ok(encoded)
}

#[derive(Debug)]
struct Counters {
    shelf: Arc<Shelf>,
    board: Arc<StatusBoard>,
}

impl Collector for Counters {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), Error> {
        let tenants = self.shelf.tenants();
        let parties = || {
            let named = tenants.iter().map(|(id, traffic)| (&**id, &**traffic));
            named.chain([(SHARED, &self.shelf.shared), (UNKNOWN, &self.shelf.unknown)])
        };
        requests(&mut encoder, parties())?;
        latency(&mut encoder, parties())?;
        self.connections(&mut encoder)?;
        self.tenants(&mut encoder)
    }
}

/// A tenant's id, or one of the two names for what is no tenant's.
type Party<'a> = (&'a str, &'a Traffic);

fn requests<'a>(
    encoder: &mut DescriptorEncoder<'_>,
    parties: impl Iterator<Item = Party<'a>> + Clone,
) -> Result<(), Error> {
    let mut family = encoder.encode_descriptor(
        "http_requests",
        "Requests answered",
        None,
        MetricType::Counter,
    )?;
    for (tenant, traffic) in parties.clone() {
        for count in traffic.counts() {
            let labels = [
                ("tenant", tenant),
                ("status", count.class),
                ("coding", count.coding.token()),
            ];
            family
                .encode_family(&labels)?
                .encode_counter::<NoLabelSet, _, u64>(&count.requests, None)?;
        }
    }
    let unit = Some(&Unit::Bytes);
    let mut family = encoder.encode_descriptor(
        "http_response",
        "Bytes of bodies sent",
        unit,
        MetricType::Counter,
    )?;
    for (tenant, traffic) in parties {
        for count in traffic.counts() {
            let labels = [
                ("tenant", tenant),
                ("status", count.class),
                ("coding", count.coding.token()),
            ];
            family
                .encode_family(&labels)?
                .encode_counter::<NoLabelSet, _, u64>(&count.bytes, None)?;
        }
    }
    Ok(())
}

fn latency<'a>(
    encoder: &mut DescriptorEncoder<'_>,
    parties: impl Iterator<Item = Party<'a>>,
) -> Result<(), Error> {
    let help = "Time from a request's header fields to the last byte of its response";
    let mut family = encoder.encode_descriptor(
        "http_request_duration",
        help,
        Some(&Unit::Seconds),
        MetricType::Histogram,
    )?;
    for (tenant, traffic) in parties {
        let latency = traffic.latency();
        let count = latency.buckets.iter().sum();
        if count == 0 {
            continue;
        }
        let bounds = LATENCY_BOUNDS
            .iter()
            .map(|micros| seconds(*micros))
            .chain([f64::INFINITY]);
        let buckets: Vec<(f64, u64)> = bounds.zip(latency.buckets).collect();
        family
            .encode_family(&[("tenant", tenant)])?
            .encode_histogram::<NoLabelSet>(seconds(latency.sum), count, &buckets, None)?;
    }
    Ok(())
}

#[expect(
    clippy::cast_precision_loss,
    reason = "exact for 285 years of microseconds"
)]
fn seconds(micros: u64) -> f64 {
    micros as f64 / 1_000_000.0
}

impl Counters {
    fn connections(&self, encoder: &mut DescriptorEncoder<'_>) -> Result<(), Error> {
        let connections = &self.shelf.connections;
        let help = "Connections accepted";
        encoder
            .encode_descriptor("connections", help, None, MetricType::Counter)?
            .encode_counter::<NoLabelSet, _, u64>(&connections.accepted.load(Relaxed), None)?;

        let help = "Connections that the server ended early, by reason";
        let mut family =
            encoder.encode_descriptor("connections_ended", help, None, MetricType::Counter)?;
        for (reason, counter) in [
            ("address", &connections.refused),
            ("header_timeout", &connections.slow_heads),
            ("write_timeout", &connections.slow_readers),
            ("request_timeout", &connections.slow_requests),
            ("idle_timeout", &connections.idle),
            ("malformed", &connections.malformed),
        ] {
            family
                .encode_family(&[("reason", reason)])?
                .encode_counter::<NoLabelSet, _, u64>(&counter.load(Relaxed), None)?;
        }
        Ok(())
    }

    fn tenants(&self, encoder: &mut DescriptorEncoder<'_>) -> Result<(), Error> {
        let status = self.board.current();
        let mut family =
            encoder.encode_descriptor("tenants", "Tenants by state", None, MetricType::Gauge)?;
        for state in State::ALL {
            let count = status
                .tenants
                .iter()
                .filter(|tenant| tenant.state == state)
                .count();
            family
                .encode_family(&[("state", state.name())])?
                .encode_gauge(&u32::try_from(count).unwrap_or(u32::MAX))?;
        }
        Ok(())
    }
}
