//! Charts of the last hour: SVG paths, and the same values as text.
//!
//! **Invariant:** knows samples and no page.

use std::fmt::Write as _;

use serde::Serialize;
use server::metrics::history::Sample;
use server::metrics::tenant_history::{POINTS, STEPS_PER_POINT};

use super::value_text::{digits, micros, percent};

/// The width of a chart, in units of its SVG.
const WIDTH: f64 = 240.0;
/// The height of a chart, in units of its SVG.
const HEIGHT: f64 = 56.0;
/// The space above the highest point, so that the line is not cut.
const HEADROOM: f64 = 3.0;

/// A chart of the last hour.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Chart {
    /// The label.
    title: &'static str,
    /// The current value.
    now: String,
    /// The highest value of the hour.
    highest: String,
    /// The area below the first line, as the `d` of an SVG path.
    area: String,
    lines: Vec<ChartLine>,
}

/// A line of a chart.
#[derive(Debug, Clone, Serialize)]
struct ChartLine {
    /// The label; empty if the chart has one line.
    name: &'static str,
    /// The current value.
    now: String,
    /// The `d` of an SVG path.
    path: String,
}

/// Returns the charts of request rate, error rate and response time. The last of `points` is the current one.
pub(super) fn charts(points: &[Sample]) -> [Chart; 3] {
    let of = |value: &dyn Fn(&Sample) -> Option<f64>| points.iter().map(value).collect::<Vec<_>>();
    let rates = of(&|point| Some(point.rate()));
    let shares = of(&Sample::error_share);
    let median = of(&|point| point.percentile(0.5));
    let slow = of(&|point| point.percentile(0.99));
    let recent = points.last().copied().unwrap_or_default();
    let none = || "–".to_owned();
    let time = |value: Option<f64>| value.map_or_else(none, micros);
    [
        chart(
            "Requests per second",
            1.0,
            &|value| digits(value),
            vec![("", digits(recent.rate()), rates)],
        ),
        chart(
            "Error rate (5xx)",
            0.01,
            &|value| percent(value),
            vec![("", recent.error_share().map_or_else(none, percent), shares)],
        ),
        chart(
            "Response time",
            50.0,
            &|value| micros(value),
            vec![
                ("99th percentile", time(recent.percentile(0.99)), slow),
                ("50th percentile", time(recent.percentile(0.5)), median),
            ],
        ),
    ]
}

/// Returns a chart of several series. Its top is at least `least`, so that small values look small.
fn chart(
    title: &'static str,
    least: f64,
    format: &dyn Fn(f64) -> String,
    series: Vec<(&'static str, String, Vec<Option<f64>>)>,
) -> Chart {
    let all = series.iter().flat_map(|(_, _, values)| values).flatten();
    let highest = all.copied().fold(None, |highest: Option<f64>, value| {
        Some(highest.map_or(value, |highest| highest.max(value)))
    });
    let top = highest.unwrap_or(0.0).max(least);
    let area = series
        .first()
        .map_or_else(String::new, |(_, _, values)| path(values, top, true));
    let lines: Vec<ChartLine> = series
        .into_iter()
        .map(|(name, now, values)| ChartLine {
            name,
            now,
            path: path(&values, top, false),
        })
        .collect();
    Chart {
        title,
        now: lines
            .first()
            .map(|line| line.now.clone())
            .unwrap_or_default(),
        highest: highest.map_or_else(|| "–".to_owned(), format),
        area,
        lines,
    }
}

/// Merges samples into points. Groups are counted from the newest, so that the last point is complete.
pub(super) fn points(samples: &[Sample]) -> Vec<Sample> {
    let mut points: Vec<Sample> = samples
        .rchunks(STEPS_PER_POINT)
        .map(|group| {
            group
                .iter()
                .fold(Sample::default(), |all, one| all.plus(one))
        })
        .collect();
    points.reverse();
    points
}

/// Returns the `d` of an SVG path through values, aligned to the right. A missing value is a gap.
#[expect(clippy::cast_precision_loss, reason = "some hundred points")]
fn path(values: &[Option<f64>], top: f64, is_area: bool) -> String {
    let step = WIDTH / (POINTS - 1) as f64;
    let first = POINTS.saturating_sub(values.len());
    let mut path = String::new();
    let place = |index: usize, value: f64| {
        let x = (first + index) as f64 * step;
        let y = HEIGHT - value / top * (HEIGHT - HEADROOM);
        (x, y)
    };
    let mut index = 0;
    while index < values.len() {
        let run = values[index..].iter().map_while(|value| *value);
        let run: Vec<f64> = run.collect();
        for (offset, value) in run.iter().enumerate() {
            let (x, y) = place(index + offset, *value);
            let command = if offset == 0 { 'M' } else { 'L' };
            // Writing to a string does not fail.
            let _ = match (is_area, offset) {
                (true, 0) => write!(path, "M{x:.1} {HEIGHT:.1}L{x:.1} {y:.1}"),
                _ => write!(path, "{command}{x:.1} {y:.1}"),
            };
        }
        if let Some(last) = run.len().checked_sub(1) {
            let (x, _) = place(index + last, 0.0);
            let _ = match (is_area, last) {
                (true, _) => write!(path, "L{x:.1} {HEIGHT:.1}Z"),
                // A single point is a line of no length; round line ends make it a dot.
                (false, 0) => write!(path, "h0"),
                (false, _) => Ok(()),
            };
        }
        index += run.len().max(1);
    }
    path
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn sample(requests: u64, errors: u64) -> Sample {
        let mut latency = [0; 12];
        latency[0] = requests;
        Sample {
            took: Duration::from_secs(10),
            requests,
            errors,
            latency,
        }
    }

    #[test]
    fn chart_has_the_current_and_the_highest_value() {
        let mut samples = vec![sample(600, 6); 30];
        samples.extend([sample(20, 0); 3]);
        let [rate, errors, time] = charts(&points(&samples));
        assert_eq!((&*rate.now, &*rate.highest), ("2.00", "60.0"));
        assert_eq!((&*errors.now, &*errors.highest), ("0 %", "1.00 %"));
        assert_eq!(time.lines.len(), 2);
        assert_eq!(
            (&*time.lines[0].now, &*time.lines[1].now),
            ("24.8 µs", "12.5 µs")
        );
        // 11 points end at the right edge.
        assert!(
            rate.lines[0].path.ends_with("L240.0 54.2"),
            "{}",
            rate.lines[0].path
        );
        assert_eq!(rate.lines[0].path.matches('L').count(), 10);
        assert!(rate.area.ends_with("L240.0 56.0Z"), "{}", rate.area);
    }

    #[test]
    fn without_requests_there_is_no_value_and_no_line() {
        let [rate, errors, time] = charts(&[]);
        assert_eq!((&*rate.now, &*rate.highest, &*rate.area), ("0", "–", ""));
        let [_, quiet, _] = charts(&[sample(0, 0); 2]);
        for chart in [errors, quiet, time] {
            assert_eq!((&*chart.now, &*chart.lines[0].path), ("–", ""));
        }
    }

    #[test]
    fn gap_splits_the_line() {
        let values = [Some(1.0), None, Some(1.0), Some(0.0)];
        let text = path(&values, 1.0, false);
        assert_eq!(text, "M233.9 3.0h0M238.0 3.0L240.0 56.0");
        assert_eq!(path(&[None], 1.0, true), "");
    }

    #[test]
    fn samples_of_an_hour_fill_all_points() {
        let points = points(&[sample(1, 0); server::metrics::history::MAX_SAMPLES]);
        assert_eq!((points.len(), points[0].requests), (POINTS, 3));
        assert_eq!(super::points(&[sample(1, 0); 4]).len(), 2);
    }
}
