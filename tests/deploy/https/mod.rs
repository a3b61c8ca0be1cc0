//! HTTPS as a browser, other TLS clients and Mozilla's HTTP Observatory see it.

mod browser;
mod observatory;
mod openssl;
