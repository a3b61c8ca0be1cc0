//! Credentials: whether the environment or the machine has any.
//!
//! Without variables, `object_store` asks the metadata service of the machine, which instances of a cloud have. On other machines each request waits for this service, and fails after a minute with an error about an address that no operator has set.

use std::env;
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use object_store::ObjectStoreScheme;
use url::Url;

use crate::store::AddressError;

/// The address of the metadata service in all three clouds.
const METADATA_SERVICE: ([u8; 4], u16) = ([169, 254, 169, 254], 80);

/// The variable with another address of the metadata service.
const METADATA_VARIABLE: &str = "AWS_METADATA_ENDPOINT";

/// The limit on the time for a connection to the metadata service, which is on the same machine.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);

/// The file with the credentials of `gcloud auth application-default login`, below the home folder.
const GOOGLE_FILE: &str = ".config/gcloud/application_default_credentials.json";

/// The ways to give credentials of a service.
struct Service {
    /// Variables of which any shows that an operator has chosen credentials, or a way to get them.
    variables: &'static [&'static str],
    /// The variables to set.
    hint: &'static str,
}

const AMAZON: Service = Service {
    variables: &[
        "AWS_ACCESS_KEY_ID",
        "AWS_SECRET_ACCESS_KEY",
        "AWS_WEB_IDENTITY_TOKEN_FILE",
        "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
        "AWS_CONTAINER_CREDENTIALS_FULL_URI",
        "AWS_SKIP_SIGNATURE",
    ],
    hint: "set AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_REGION, or run on a machine with an instance role",
};

const GOOGLE: Service = Service {
    variables: &[
        "GOOGLE_SERVICE_ACCOUNT",
        "GOOGLE_SERVICE_ACCOUNT_PATH",
        "GOOGLE_SERVICE_ACCOUNT_KEY",
        "GOOGLE_APPLICATION_CREDENTIALS",
        "GOOGLE_SKIP_SIGNATURE",
        "GCE_METADATA_HOST",
        "GCE_METADATA_ROOT",
        "GCE_METADATA_IP",
    ],
    hint: "set GOOGLE_SERVICE_ACCOUNT to the file of a service account, or run on a machine with a service account",
};

const AZURE: Service = Service {
    variables: &[
        "AZURE_STORAGE_ACCOUNT_KEY",
        "AZURE_STORAGE_ACCESS_KEY",
        "AZURE_STORAGE_MASTER_KEY",
        "AZURE_STORAGE_SAS_KEY",
        "AZURE_STORAGE_SAS_TOKEN",
        "AZURE_STORAGE_TOKEN",
        "AZURE_STORAGE_CLIENT_ID",
        "AZURE_CLIENT_ID",
        "AZURE_FEDERATED_TOKEN_FILE",
        "AZURE_MSI_ENDPOINT",
        "AZURE_IDENTITY_ENDPOINT",
        "AZURE_USE_AZURE_CLI",
        "AZURE_SKIP_SIGNATURE",
        "AZURE_STORAGE_USE_EMULATOR",
    ],
    hint: "set AZURE_STORAGE_ACCOUNT_NAME and AZURE_STORAGE_ACCOUNT_KEY, or run on a machine with a managed identity",
};

/// Checks that credentials for the bucket with this address are in the environment, or that the machine has a metadata service. Waits two seconds for the service.
///
/// # Errors
/// Returns an error that names the variables to set.
pub fn require(address: &str) -> Result<(), AddressError> {
    // An address that is no URL is reported by its user.
    let Ok(url) = Url::parse(address) else {
        return Ok(());
    };
    let has_google_file = || env::home_dir().is_some_and(|home| home.join(GOOGLE_FILE).is_file());
    let service = match ObjectStoreScheme::parse(&url) {
        Ok((ObjectStoreScheme::AmazonS3, _)) => AMAZON,
        Ok((ObjectStoreScheme::GoogleCloudStorage, _)) if !has_google_file() => GOOGLE,
        Ok((ObjectStoreScheme::MicrosoftAzure, _)) => AZURE,
        _ => return Ok(()),
    };
    let variable = |name: &str| env::var(name).ok();
    match service.has_any(variable) || answers(variable(METADATA_VARIABLE).as_deref()) {
        true => Ok(()),
        false => Err(AddressError::NoCredentials {
            address: address.to_owned(),
            hint: service.hint,
        }),
    }
}

impl Service {
    /// Returns whether one of the variables is set, in capitals or not, as the client reads them.
    fn has_any(&self, variable: impl Fn(&str) -> Option<String>) -> bool {
        let mut names = self.variables.iter();
        names.any(|name| variable(name).is_some() || variable(&name.to_lowercase()).is_some())
    }
}

/// Returns whether a metadata service accepts connections, at this URL or at its usual address.
fn answers(endpoint: Option<&str>) -> bool {
    let addresses: Vec<SocketAddr> = match endpoint.map(Url::parse) {
        None => vec![METADATA_SERVICE.into()],
        Some(Ok(url)) => url.socket_addrs(|| None).unwrap_or_default(),
        Some(Err(_)) => Vec::new(),
    };
    addresses
        .iter()
        .any(|address| TcpStream::connect_timeout(address, CONNECT_TIMEOUT).is_ok())
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn one_variable_of_the_service_is_enough() {
        let only = |set: &'static str| move |name: &str| (name == set).then(|| "x".to_owned());
        for set in ["AWS_ACCESS_KEY_ID", "aws_web_identity_token_file"] {
            assert!(AMAZON.has_any(only(set)), "{set}");
        }
        assert!(!AMAZON.has_any(only("AWS_REGION")));
        assert!(!AMAZON.has_any(only("GOOGLE_SERVICE_ACCOUNT")));
        assert!(AZURE.has_any(only("AZURE_STORAGE_ACCOUNT_KEY")));
    }

    #[test]
    fn metadata_service_must_accept_a_connection() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        let endpoint = format!("http://{address}/latest");
        assert!(answers(Some(&endpoint)));
        drop(listener);
        assert!(!answers(Some(&endpoint)));
        assert!(!answers(Some("no URL")));
    }
}
