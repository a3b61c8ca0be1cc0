//! The rows of the comparison: what is requested, how, and from which servers.

/// A page that all servers send.
#[derive(Debug, Clone, Copy)]
pub struct Page {
    pub path: &'static str,
    /// Bytes of the body that is sent.
    pub bytes: usize,
    /// Whether servers choose this body by `accept-encoding`.
    pub is_compressed: bool,
}

const HOME: Page = Page {
    path: "/page",
    bytes: 12 * 1024,
    is_compressed: true,
};
const SMALL: Page = Page {
    path: "/small",
    bytes: 1024,
    is_compressed: true,
};
const LARGE: Page = Page {
    path: "/large",
    bytes: 1024 * 1024,
    is_compressed: false,
};
pub const PAGES: [Page; 3] = [HOME, SMALL, LARGE];

impl Page {
    /// Returns the body: incompressible, and not valid gzip, since no server decodes it.
    pub fn body(&self) -> Vec<u8> {
        let bytes = 0..self.bytes;
        bytes.map(|index| (index * 7 % 251) as u8).collect()
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    Http1,
    Http1Tls,
    /// Without TLS, by prior knowledge.
    Http2,
    Http2Tls,
}

impl Protocol {
    pub const fn is_tls(self) -> bool {
        matches!(self, Self::Http1Tls | Self::Http2Tls)
    }

    pub const fn is_http2(self) -> bool {
        matches!(self, Self::Http2 | Self::Http2Tls)
    }
}

/// A row of the comparison.
#[derive(Debug)]
pub struct Row {
    /// The argument that selects the row.
    pub name: &'static str,
    pub title: &'static str,
    pub page: Page,
    pub protocol: Protocol,
    pub has_log: bool,
    /// Requests in flight: connections of HTTP/1.1, or streams of one connection of HTTP/2.
    pub width: usize,
    /// Times that each connection or stream is used in a turn.
    pub batches: usize,
    /// Other servers, with the budget of rowhouse's CPU time in relation to theirs. Servers without a budget are only shown.
    pub peers: &'static [(&'static str, Option<f64>)],
}

/// No row may cost much more than at the best peer.
const NO_WORSE: Option<f64> = Some(1.05);
const WITHOUT_LANE: (&str, Option<f64>) = ("rowhouse, no lane", None);
const BARE_HYPER: (&str, Option<f64>) = ("bare hyper", None);

const HTTP2_ROW: Row = Row {
    name: "http2",
    title: "HTTP/2, page of 12 KB, 100 streams",
    protocol: Protocol::Http2,
    width: 100,
    batches: 5,
    peers: &[
        ("nginx", Some(1.0)),
        ("h2o", Some(1.0)),
        ("caddy", NO_WORSE),
        ("bare h2", None),
    ],
    ..PAGE_ROW
};

const PAGE_ROW: Row = Row {
    name: "page",
    title: "HTTP/1.1, page of 12 KB",
    page: HOME,
    protocol: Protocol::Http1,
    has_log: false,
    width: 32,
    batches: 20,
    peers: &[
        ("nginx", Some(0.7)),
        ("h2o", Some(1.0)),
        ("caddy", NO_WORSE),
        ("static-web-server", NO_WORSE),
        BARE_HYPER,
        WITHOUT_LANE,
    ],
};

pub const ROWS: [Row; 7] = [
    PAGE_ROW,
    Row {
        name: "small",
        title: "HTTP/1.1, file of 1 KB",
        page: SMALL,
        peers: &[
            ("nginx", NO_WORSE),
            ("h2o", NO_WORSE),
            ("caddy", NO_WORSE),
            ("static-web-server", NO_WORSE),
            BARE_HYPER,
            WITHOUT_LANE,
        ],
        ..PAGE_ROW
    },
    Row {
        name: "large",
        title: "HTTP/1.1, file of 1 MB",
        page: LARGE,
        width: 8,
        batches: 5,
        peers: &[
            ("nginx", NO_WORSE),
            ("h2o", NO_WORSE),
            ("caddy", NO_WORSE),
            ("static-web-server", NO_WORSE),
            BARE_HYPER,
            WITHOUT_LANE,
        ],
        ..PAGE_ROW
    },
    Row {
        name: "log",
        title: "HTTP/1.1, page of 12 KB, JSON log",
        has_log: true,
        peers: &[("nginx", Some(0.75)), ("h2o", NO_WORSE), WITHOUT_LANE],
        ..PAGE_ROW
    },
    Row {
        name: "tls",
        title: "HTTP/1.1 over TLS 1.3, page of 12 KB",
        protocol: Protocol::Http1Tls,
        peers: &[
            ("nginx", Some(0.75)),
            ("h2o", NO_WORSE),
            ("caddy", NO_WORSE),
            WITHOUT_LANE,
        ],
        ..PAGE_ROW
    },
    HTTP2_ROW,
    Row {
        name: "http2-tls",
        title: "HTTP/2 over TLS 1.3, page of 12 KB, 100 streams",
        protocol: Protocol::Http2Tls,
        peers: &[
            ("nginx", Some(1.0)),
            ("h2o", Some(1.0)),
            ("caddy", NO_WORSE),
        ],
        ..HTTP2_ROW
    },
];
