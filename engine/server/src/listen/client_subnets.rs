//! Counts the open connections of each client subnet, and defines a client subnet.
//!
//! **Invariant:** opens and closes no connection; costs a request nothing.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};

/// Open connections by client subnet.
#[derive(Debug, Default)]
pub(crate) struct ClientSubnets {
    open: Mutex<HashMap<IpAddr, usize>>,
}

/// One connection of a client subnet, given back on drop.
#[derive(Debug)]
pub(crate) struct ClientShare {
    subnets: Arc<ClientSubnets>,
    subnet: IpAddr,
}

impl ClientSubnets {
    /// Counts one more connection from the subnet of `address`, unless the subnet has `limit` connections already.
    pub(crate) fn admit(self: &Arc<Self>, address: IpAddr, limit: usize) -> Option<ClientShare> {
        let subnet = client_subnet(address);
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let count = open.entry(subnet).or_default();
        (*count < limit).then(|| {
            *count += 1;
            ClientShare {
                subnets: Arc::clone(self),
                subnet,
            }
        })
    }

    fn release(&self, subnet: IpAddr) {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = open.get_mut(&subnet) {
            *count -= 1;
            if *count == 0 {
                open.remove(&subnet);
            }
        }
    }
}

impl Drop for ClientShare {
    fn drop(&mut self) {
        self.subnets.release(self.subnet);
    }
}

/// Returns the subnet of a client: the address for IPv4, the /64 network for IPv6. A client usually has a complete /64 network, so single IPv6 addresses do not tell clients apart.
pub(crate) fn client_subnet(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(v6) => {
            let [a, b, c, d, ..] = v6.segments();
            IpAddr::from([a, b, c, d, 0, 0, 0, 0])
        }
        v4 => v4,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn client_is_refused_beyond_its_limit() {
        let subnets = Arc::new(ClientSubnets::default());
        let address = IpAddr::from([192, 0, 2, 1]);
        let admit = || subnets.admit(address, 2);
        let (first, second) = (admit().unwrap(), admit().unwrap());
        assert!(admit().is_none());
        let _other = subnets.admit(IpAddr::from([192, 0, 2, 2]), 2).unwrap();
        drop(first);
        let third = admit().unwrap();
        assert!(admit().is_none());
        drop((second, third));
        assert_eq!(subnets.open.lock().unwrap().len(), 1);
    }

    #[test]
    fn ipv6_network_of_64_bits_is_one_client() {
        let of = |text: &str| client_subnet(text.parse().unwrap());
        assert_eq!(of("2001:db8:1:2:3::4"), of("2001:db8:1:2:ffff::"));
        assert_ne!(of("2001:db8:1:2::"), of("2001:db8:1:3::"));
        assert_eq!(of("::ffff:192.0.2.1"), of("192.0.2.1"));
    }
}
