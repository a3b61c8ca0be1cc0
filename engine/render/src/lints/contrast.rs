//! Checks the contrast of a tenant's colours. The contrast of the theme's own colours is reported with the theme.

use crate::compile::prepared_tenant::PreparedTenant;
use crate::styles::contrast::{self, TIMES};
use content::report::{Code, Diagnostic};
use content::tenant::{MANIFEST, Site};
use content::theme::Theme;

/// Returns a warning for each colour pair of the theme that the tenant's colours bring below 4.5:1, by day or by night.
#[must_use]
pub(super) fn check(site: &Site, prepared: &PreparedTenant, theme: &Theme) -> Vec<Diagnostic> {
    let pairs = theme.manifest.contrast.iter();
    let both = pairs.flat_map(|pair| TIMES.map(|time| (pair, time)));
    let found = both.filter_map(|([text, ground], time)| {
        let of_theme = |name| {
            let role = theme.manifest.roles.get(name)?;
            Some(time.of((role.day.as_str(), role.night.as_str())))
        };
        let front = time.of(prepared.role(text, theme)?);
        let back = time.of(prepared.role(ground, theme)?);
        if of_theme(text) == Some(front) && of_theme(ground) == Some(back) {
            return None;
        }
        let message = contrast::problem(time, (text, front), (ground, back))?;
        let warning = Diagnostic::warning(Code::LowContrast, site.name_of(MANIFEST), message);
        Some(warning.hint(contrast::HINT))
    });
    found.collect()
}
