//! Failures of templates, each reported once for all tenants with the theme.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use content::report::{Code, Diagnostic, TextPosition};

/// A place in a file of a theme.
type Place = (String, Option<TextPosition>, Code);

/// The failures at each place, and the number of further tenants that fail at this place.
#[derive(Debug, Default)]
pub(crate) struct TemplateFailures(BTreeMap<Place, (Vec<Diagnostic>, usize)>);

impl TemplateFailures {
    /// Adds the failures of a tenant.
    pub(crate) fn add(&mut self, failures: impl IntoIterator<Item = Diagnostic>) {
        let mut by_place: BTreeMap<Place, Vec<Diagnostic>> = BTreeMap::new();
        for failure in failures {
            let place = (failure.file.clone(), failure.position, failure.code);
            by_place.entry(place).or_default().push(failure);
        }
        for (place, failures) in by_place {
            match self.0.entry(place) {
                Entry::Vacant(entry) => drop(entry.insert((failures, 0))),
                Entry::Occupied(entry) => entry.into_mut().1 += 1,
            }
        }
    }

    /// Returns the failures of the first tenant at each place, with the number of further tenants.
    pub(crate) fn into_diagnostics(self) -> impl Iterator<Item = Diagnostic> {
        self.0.into_values().flat_map(|(failures, more)| {
            failures.into_iter().map(move |failure| {
                let message = match more {
                    0 => return failure,
                    1 => format!("{}, and for 1 more tenant", failure.message),
                    _ => format!("{}, and for {more} more tenants", failure.message),
                };
                Diagnostic { message, ..failure }
            })
        })
    }
}
