//! The places of marks in a text, each found once.
//!
//! To look for the end of each mark anew takes time that grows with the square of a text of nothing but marks.
//!
//! **Invariant:** as long as places are requested in ascending order, each mark is looked for over each byte of the text once.

/// The next place of each mark.
pub(super) struct Marks<'a> {
    text: &'a str,
    known: Vec<NextMark>,
    /// How many bytes were looked at.
    pub(super) steps: usize,
}

/// The first place of a mark at or behind a byte.
struct NextMark {
    mark: &'static str,
    from: usize,
    place: Option<usize>,
}

impl<'a> Marks<'a> {
    /// The marks of a text.
    pub(super) const fn of(text: &'a str) -> Self {
        Self {
            text,
            known: Vec::new(),
            steps: 0,
        }
    }

    /// Returns the first place of a mark that begins at or behind a byte.
    pub(super) fn next(&mut self, mark: &'static str, at: usize) -> Option<usize> {
        let index = self.known.iter().position(|known| known.mark == mark);
        let Some(index) = index else {
            let place = self.find(mark, at, self.text.len());
            self.known.push(NextMark {
                mark,
                from: at,
                place,
            });
            return place;
        };
        let (from, place) = (self.known[index].from, self.known[index].place);
        if at < from {
            // A few bytes before what was asked last.
            let end = (from + mark.len() - 1).min(self.text.len());
            return self.find(mark, at, end).or(place);
        }
        if place.is_none_or(|place| at <= place) {
            return place;
        }
        let place = self.find(mark, at, self.text.len());
        self.known[index] = NextMark {
            mark,
            from: at,
            place,
        };
        place
    }

    fn find(&mut self, mark: &str, from: usize, to: usize) -> Option<usize> {
        let bytes = self.text.as_bytes().get(from..to)?;
        let found = memchr::memmem::find(bytes, mark.as_bytes());
        self.steps += found.map_or(bytes.len(), |found| found + mark.len());
        found.map(|found| from + found)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn place_is_the_one_that_a_search_finds(text in "[ab]{0,20}", asked in proptest::collection::vec(0_usize..20, 0..20)) {
            let mut marks = Marks::of(&text);
            for at in asked.into_iter().filter(|at| *at <= text.len()) {
                for mark in ["a", "ab", "bb"] {
                    let found = text[at..].find(mark).map(|found| at + found);
                    prop_assert_eq!(marks.next(mark, at), found, "{} of {} from {}", mark, text, at);
                }
            }
        }
    }
}
