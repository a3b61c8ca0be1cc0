//! The states of one tenant, and what leads from one to the next.
//!
//! Three things go on at once, and none waits for another:
//!
//! ```text
//! its folder    Unread ──request──> Reading ──take──> Taken            (a newer request: Reading again)
//! its pages     Idle ──begin──> Rendering ──finish──> Rendered ──sleep──> Asleep ──finish──> Rendered   (other inputs: Rendering again; no theme: Idle)
//! its visitors  Absent ──wait──> Pending ──serve──> Live <──errors──> Degraded   (what was served once is never taken away)
//! ```
//!
//! What comes back late, from a request or from inputs that are no longer the newest, changes nothing.
//!
//! **Invariant:** knows no folder, no page and no thread: only what is under way, and what is served.

use std::time::SystemTime;

use server::status::State;

/// Where the reading of the folder stands. Readings have numbers, which only grow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Folder {
    /// Nobody has asked for it.
    Unread,
    /// On its way; `taken` is the newest that came back.
    Reading { requested: u64, taken: u64 },
    /// The newest has come back.
    Taken(u64),
}

/// Where the rendering of the newest content stands.
#[derive(Debug)]
enum Pages<I> {
    /// Nothing can be rendered: there is no content, or no theme.
    Idle,
    /// On its way, from these inputs.
    Rendering(I),
    /// Over, whatever came of it.
    Rendered(I),
    /// Served, and out of memory: rendered again when somebody asks.
    Asleep(I),
}

/// What visitors get, and what it was made from.
#[derive(Debug)]
pub(crate) struct Served<I, R> {
    pub(crate) inputs: I,
    pub(crate) result: R,
}

/// What visitors get.
#[derive(Debug)]
enum Visitors<I, R> {
    /// Nothing.
    Absent,
    /// What they ask for as soon as it is there.
    Waiting(Served<I, R>),
    /// Pages.
    Served(Served<I, R>),
}

/// What came of a rendering.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Finished {
    /// It is served now.
    Served,
    /// Nothing: what was served before stays.
    Failed,
    /// Nothing, and nothing was ever served: what was good before the process began may stand in.
    NeedsStandIn,
}

/// The states of one tenant, of which each result `R` is made from inputs `I`.
#[derive(Debug)]
pub(crate) struct Lifecycle<I, R> {
    folder: Folder,
    pages: Pages<I>,
    visitors: Visitors<I, R>,
    state: State,
    /// When it came into this state, once that was settled.
    since: Option<SystemTime>,
}

impl<I, R> Default for Lifecycle<I, R> {
    fn default() -> Self {
        Self {
            folder: Folder::Unread,
            pages: Pages::Idle,
            visitors: Visitors::Absent,
            state: State::Absent,
            since: None,
        }
    }
}

impl<I: Clone + PartialEq, R> Lifecycle<I, R> {
    /// The folder is read, by this number.
    pub(crate) fn request(&mut self, number: u64) {
        let taken = match self.folder {
            Folder::Unread => 0,
            Folder::Reading { taken, .. } | Folder::Taken(taken) => taken,
        };
        self.folder = Folder::Reading {
            requested: number,
            taken,
        };
    }

    /// A reading comes back. Whether it is to be taken: nothing newer was.
    pub(crate) fn take(&mut self, number: u64) -> bool {
        let (requested, taken) = match self.folder {
            Folder::Unread => return false,
            Folder::Reading { requested, taken } => (requested, taken),
            Folder::Taken(taken) => (taken, taken),
        };
        if number <= taken {
            return false;
        }
        self.folder = match number < requested {
            true => Folder::Reading {
                requested,
                taken: number,
            },
            false => Folder::Taken(number),
        };
        true
    }

    /// The content is to be rendered from these inputs. Whether that has to be done: it was not with the same ones.
    pub(crate) fn begin(&mut self, inputs: &I) -> bool {
        match &self.pages {
            Pages::Rendering(before) | Pages::Rendered(before) | Pages::Asleep(before)
                if before == inputs =>
            {
                false
            }
            _ => {
                self.pages = Pages::Rendering(inputs.clone());
                true
            }
        }
    }

    /// Nothing can be rendered any longer; what is on its way is not taken.
    pub(crate) fn stop(&mut self) {
        self.pages = Pages::Idle;
    }

    /// Whether a rendering from these inputs is the one that is waited for.
    pub(crate) fn awaits(&self, inputs: &I) -> bool {
        let (Pages::Rendering(awaited) | Pages::Asleep(awaited)) = &self.pages else {
            return false;
        };
        awaited == inputs
    }

    /// The rendering that is waited for comes back, with a result or without.
    pub(crate) fn finish(&mut self, inputs: I, result: Option<R>) -> Finished {
        self.pages = Pages::Rendered(inputs.clone());
        match (result, &self.visitors) {
            (Some(result), _) => {
                self.visitors = Visitors::Served(Served { inputs, result });
                Finished::Served
            }
            (None, Visitors::Served(_)) => Finished::Failed,
            (None, _) => Finished::NeedsStandIn,
        }
    }

    /// Visitors may ask from now on, and wait. What was served before stays.
    pub(crate) fn wait(&mut self, inputs: I, result: R) {
        if !self.has_served() {
            self.visitors = Visitors::Waiting(Served { inputs, result });
        }
    }

    /// What is being rendered, or was last.
    pub(crate) const fn last(&self) -> Option<&I> {
        match &self.pages {
            Pages::Idle => None,
            Pages::Rendering(last) | Pages::Rendered(last) | Pages::Asleep(last) => Some(last),
        }
    }

    /// Whether what is served is what was rendered last.
    pub(crate) fn is_at_rest(&self) -> bool {
        match (&self.pages, &self.visitors) {
            (Pages::Rendered(last), Visitors::Served(served)) => *last == served.inputs,
            _ => false,
        }
    }

    /// Whether what was rendered last, or is waited for, was made from these inputs, so that more that is made of it may be served.
    pub(crate) fn may_finish(&self, inputs: &I) -> bool {
        self.last() == Some(inputs) && (self.is_at_rest() || self.awaits(inputs))
    }

    /// What is served is out of memory. `result` is what is left of it.
    pub(crate) fn sleep(&mut self, inputs: I, result: R) {
        self.pages = Pages::Asleep(inputs.clone());
        self.visitors = Visitors::Served(Served { inputs, result });
    }

    /// Nothing will come: visitors no longer wait.
    pub(crate) fn give_up(&mut self) {
        if !self.has_served() {
            self.visitors = Visitors::Absent;
        }
    }

    /// What was good before the process began is served, unless something else is by now. Whether it is.
    pub(crate) fn stand_in(&mut self, inputs: I, result: R) -> bool {
        let is_new = !self.has_served();
        if is_new {
            self.visitors = Visitors::Served(Served { inputs, result });
        }
        is_new
    }

    /// What visitors get, or wait for.
    pub(crate) const fn served(&self) -> Option<&Served<I, R>> {
        match &self.visitors {
            Visitors::Absent => None,
            Visitors::Waiting(served) | Visitors::Served(served) => Some(served),
        }
    }

    /// Whether visitors have got pages.
    pub(crate) const fn has_served(&self) -> bool {
        matches!(self.visitors, Visitors::Served(_))
    }

    /// Whether pages are being rendered.
    pub(crate) const fn is_rendering(&self) -> bool {
        matches!(self.pages, Pages::Rendering(_))
    }

    /// Whether the folder is being read.
    pub(crate) const fn is_reading(&self) -> bool {
        matches!(self.folder, Folder::Reading { .. })
    }

    /// Whether the folder is being read, or pages are being rendered.
    pub(crate) const fn is_under_way(&self) -> bool {
        self.is_rendering() || self.is_reading()
    }

    /// Settles how visitors are served, now that it is known whether the folder has errors.
    pub(crate) fn settle(&mut self, has_errors: bool, now: SystemTime) {
        let state = match (&self.visitors, has_errors) {
            (Visitors::Absent, _) => State::Absent,
            (Visitors::Waiting(_), _) => State::Pending,
            (Visitors::Served(_), false) => State::Live,
            (Visitors::Served(_), true) => State::Degraded,
        };
        if state != self.state || self.since.is_none() {
            self.state = state;
            self.since = Some(now);
        }
    }

    /// How visitors are served, and since when.
    pub(crate) const fn state(&self) -> (State, SystemTime) {
        let since = match self.since {
            Some(since) => since,
            None => SystemTime::UNIX_EPOCH,
        };
        (self.state, since)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    type Tested = Lifecycle<&'static str, u32>;

    fn served(tested: &Tested) -> Option<u32> {
        tested.served().map(|served| served.result)
    }

    #[test]
    fn a_reading_is_under_way_until_the_newest_came_back() {
        let mut tested = Tested::default();
        assert!(!tested.is_under_way());
        tested.request(4);
        tested.request(7);
        assert!(tested.take(4), "newer than nothing");
        assert!(tested.is_under_way(), "the seventh is awaited");
        assert!(tested.take(7));
        assert!(!tested.is_under_way());
        tested.request(9);
        assert!(tested.is_under_way());
    }

    #[test]
    fn a_reading_that_comes_late_changes_nothing() {
        let mut tested = Tested::default();
        assert!(!tested.take(1), "nobody asked");
        tested.request(4);
        tested.request(7);
        assert!(tested.take(7));
        assert!(!tested.take(4) && !tested.take(7));
        assert!(!tested.is_under_way());
        tested.request(9);
        assert!(!tested.take(7));
        assert!(tested.is_under_way());
    }

    #[test]
    fn the_same_inputs_are_rendered_once() {
        let mut tested = Tested::default();
        assert!(tested.begin(&"one"));
        assert!(!tested.begin(&"one"), "on its way");
        assert!(tested.is_rendering() && tested.awaits(&"one"));
        assert_eq!(tested.finish("one", Some(1)), Finished::Served);
        assert!(!tested.begin(&"one"), "over");
        assert!(!tested.is_rendering());
        assert_eq!(served(&tested), Some(1));
    }

    #[test]
    fn other_inputs_are_rendered_and_the_former_no_longer_awaited() {
        let mut tested = Tested::default();
        tested.begin(&"one");
        assert!(tested.begin(&"two"));
        assert!(!tested.awaits(&"one") && tested.awaits(&"two"));
        tested.finish("two", Some(2));
        assert!(tested.begin(&"one"), "back to what was before");
        assert_eq!(served(&tested), Some(2), "until it is there");
    }

    #[test]
    fn what_failed_leaves_what_is_served_and_is_not_tried_again() {
        let mut tested = Tested::default();
        tested.begin(&"one");
        tested.finish("one", Some(1));
        tested.begin(&"two");
        assert_eq!(tested.finish("two", None), Finished::Failed);
        assert_eq!(served(&tested), Some(1));
        assert!(!tested.begin(&"two"));
    }

    #[test]
    fn without_a_theme_nothing_is_awaited_and_the_same_inputs_are_tried_again() {
        let mut tested = Tested::default();
        tested.begin(&"one");
        tested.stop();
        assert!(!tested.is_under_way() && !tested.awaits(&"one"));
        assert!(tested.begin(&"one"));
    }

    #[test]
    fn what_was_good_before_stands_in_only_where_nothing_is_served() {
        let mut tested = Tested::default();
        tested.begin(&"new");
        assert_eq!(tested.finish("new", None), Finished::NeedsStandIn);
        assert!(tested.stand_in("old", 1));
        assert_eq!(served(&tested), Some(1));
        assert!(!tested.stand_in("older", 0));
        tested.begin(&"newer");
        assert_eq!(tested.finish("newer", None), Finished::Failed);
        assert_eq!(served(&tested), Some(1));
    }

    #[test]
    fn visitors_wait_for_what_is_not_rendered_until_it_is_or_never_will_be() {
        let mut tested = Tested::default();
        tested.begin(&"one");
        tested.wait("one", 0);
        tested.settle(true, SystemTime::UNIX_EPOCH);
        assert_eq!(tested.state().0, State::Pending);
        assert_eq!(tested.finish("one", None), Finished::NeedsStandIn);
        assert_eq!(served(&tested), Some(0), "something may stand in");
        tested.give_up();
        assert_eq!(served(&tested), None);
        tested.begin(&"two");
        tested.wait("two", 0);
        assert_eq!(tested.finish("two", Some(2)), Finished::Served);
        tested.wait("three", 0);
        tested.give_up();
        assert_eq!(served(&tested), Some(2), "it stays");
    }

    #[test]
    fn what_is_out_of_memory_is_awaited_and_not_under_way() {
        let mut tested = Tested::default();
        tested.begin(&"one");
        assert!(!tested.is_at_rest());
        tested.finish("one", Some(1));
        assert!(tested.is_at_rest());
        tested.sleep("one", 0);
        tested.settle(false, SystemTime::UNIX_EPOCH);
        assert_eq!(tested.state().0, State::Live);
        assert!(!tested.is_under_way() && !tested.is_at_rest());
        assert!(!tested.begin(&"one") && tested.awaits(&"one"));
        assert_eq!(tested.finish("one", Some(1)), Finished::Served);
        tested.sleep("one", 0);
        assert!(tested.begin(&"two") && !tested.awaits(&"one"));
    }

    #[test]
    fn visitors_get_the_last_good_state_whatever_is_wrong() {
        let mut tested = Tested::default();
        tested.settle(true, SystemTime::UNIX_EPOCH);
        assert_eq!(tested.state().0, State::Absent);
        tested.begin(&"one");
        tested.finish("one", Some(1));
        tested.settle(false, SystemTime::UNIX_EPOCH);
        assert_eq!(tested.state().0, State::Live);
        let since = SystemTime::UNIX_EPOCH + Duration::from_secs(1);
        tested.settle(true, since);
        assert_eq!(tested.state(), (State::Degraded, since));
        tested.settle(true, since + Duration::from_secs(1));
        assert_eq!(tested.state(), (State::Degraded, since), "since then");
        tested.settle(false, SystemTime::UNIX_EPOCH);
        assert_eq!(tested.state().0, State::Live);
    }
}
