//! Draws the costs of a request as an SVG for the manual, in light and dark.

use std::fmt::Write as _;

/// The costs of a row: its title, and the CPU time of each server in microseconds.
pub type RowCosts = (&'static str, Vec<(&'static str, f64)>);

const WIDTH: f64 = 720.0;
const TITLE_HEIGHT: f64 = 30.0;
const BAR_HEIGHT: f64 = 22.0;
/// Where bars begin, and the longest bar.
const BAR_START: f64 = 150.0;
const BAR_WIDTH: f64 = 490.0;
const STYLE: &str = "text{font:14px system-ui,sans-serif;fill:#222}.title{font-weight:600}.own{fill:#0a6b5d}.peer{fill:#a9adb3}@media (prefers-color-scheme:dark){text{fill:#ddd}.own{fill:#4fc3b0}.peer{fill:#6b7078}}";

/// Returns the chart. Each row has its own scale, since a large file takes far longer than a page.
pub fn draw(rows: &[RowCosts], note: &str) -> String {
    let (mut shapes, mut top) = (String::new(), 0.0);
    for (title, costs) in rows {
        let longest = costs.iter().map(|(_, cost)| *cost).fold(0.0, f64::max);
        top += TITLE_HEIGHT;
        let baseline = top - 10.0;
        let _ = writeln!(
            shapes,
            r#"<text class="title" x="0" y="{baseline}">{title}</text>"#
        );
        for (name, cost) in costs {
            let (class, width) = match *name {
                "rowhouse" => ("own", cost / longest * BAR_WIDTH),
                _ => ("peer", cost / longest * BAR_WIDTH),
            };
            let (baseline, label, height) = (top + 15.0, BAR_START + width + 8.0, BAR_HEIGHT - 4.0);
            let _ = writeln!(
                shapes,
                r#"<text x="0" y="{baseline}">{name}</text><rect class="{class}" x="{BAR_START}" y="{top}" width="{width:.1}" height="{height}"/><text x="{label:.1}" y="{baseline}">{cost:.1} µs</text>"#
            );
            top += BAR_HEIGHT;
        }
    }
    let (baseline, height) = (top + 22.0, top + 30.0);
    format!(
        r#"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}">
<style>{STYLE}</style>
{shapes}<text x="0" y="{baseline}">{note}</text>
</svg>
"#
    )
}
