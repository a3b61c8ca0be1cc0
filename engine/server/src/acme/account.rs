//! The account with the certificate authority (CA): created once, persisted, and used again after a restart.
//!
//! **Invariant:** orders no certificate.

use std::time::Instant;

use instant_acme::{Account, AccountCredentials, Error, ExternalAccountKey, NewAccount};
use serde::{Deserialize, Serialize};
use tokio::sync::Mutex;
use tracing::{info, warn};

use super::AcmeSettings;
use super::client::AuthorityClient;
use super::order::of_request;
use super::plan::OrderFailure;
use super::shared::SharedCertificates;
use crate::acme::certificate_folder::AcmeFolder;

/// An account as it is persisted.
#[derive(Serialize, Deserialize)]
struct StoredAccount {
    credentials: AccountCredentials,
    contact: String,
}

/// Creates or loads the account when the first order needs it.
pub(super) struct AccountOwner {
    settings: AcmeSettings,
    client: AuthorityClient,
    folder: AcmeFolder,
    shared: Option<SharedCertificates>,
    state: Mutex<AccountState>,
}

/// The result of the last attempt.
#[derive(Default)]
struct AccountState {
    account: Option<Account>,
    /// Whether the account is on disk. Operators replace the account by removing its file.
    is_persisted: bool,
    /// Why the last attempt failed, and when.
    failure: Option<(Instant, OrderFailure)>,
}

impl AccountOwner {
    pub(super) fn new(
        settings: AcmeSettings,
        client: AuthorityClient,
        folder: AcmeFolder,
        shared: Option<SharedCertificates>,
    ) -> Self {
        Self {
            shared,
            settings,
            client,
            folder,
            state: Mutex::default(),
        }
    }

    /// Returns the account in use, otherwise the persisted account, otherwise a new account.
    ///
    /// # Errors
    /// When the CA does not respond or refuses the account.
    pub(super) async fn get(&self) -> Result<Account, OrderFailure> {
        let begin = Instant::now();
        // Orders that begin together share one attempt and its result.
        let mut state = self.state.lock().await;
        if state.is_persisted && !self.folder.has_account() {
            info!("the file of the ACME account was removed; creating a new account");
            *state = AccountState::default();
        }
        if let Some(account) = &state.account {
            return Ok(account.clone());
        }
        if let Some((at, failure)) = &state.failure
            && begin <= *at
        {
            return Err(failure.clone());
        }
        match self.load_or_create().await {
            Ok(account) => {
                state.account = Some(account.clone());
                state.is_persisted = self.folder.has_account();
                Ok(account)
            }
            Err(failure) => {
                state.failure = Some((Instant::now(), failure.clone()));
                Err(failure)
            }
        }
    }

    async fn load_or_create(&self) -> Result<Account, OrderFailure> {
        if let Some(shared) = &self.shared {
            return self.share(shared).await;
        }
        let own = self.folder.account().filter(|bytes| !bytes.is_empty());
        if let Some(bytes) = own {
            match parse(&bytes) {
                Ok(stored) => return self.restore(stored).await.map_err(of_request),
                Err(error) => {
                    warn!(%error, "persisted ACME account is damaged; creating a new account");
                }
            }
        }
        let (account, bytes) = self.create().await.map_err(of_request)?;
        self.persist(&bytes);
        Ok(account)
    }

    /// Returns the account of the fleet: the stored account, otherwise this replica's own account, otherwise a new account.
    async fn share(&self, shared: &SharedCertificates) -> Result<Account, OrderFailure> {
        let is_usable: fn(&[u8]) -> bool = |bytes| parse(bytes).is_ok();
        let create = async {
            match self.folder.account().filter(|bytes| is_usable(bytes)) {
                Some(own) => Ok(own),
                None => match self.create().await {
                    Ok((_, bytes)) => Ok(bytes),
                    Err(error) => Err(of_request(error)),
                },
            }
        };
        let bytes = shared.account_once(is_usable, create).await?;
        self.persist(&bytes);
        let stored = parse(&bytes).map_err(|error| of_request(Error::Json(error)))?;
        self.restore(stored).await.map_err(of_request)
    }

    /// Forgets an account that the CA does not know.
    pub(super) async fn forget(&self) {
        warn!("CA does not know the account; the next order creates a new account");
        *self.state.lock().await = AccountState::default();
        if let (Some(shared), Some(own)) = (&self.shared, self.folder.account()) {
            shared.delete_account(&own).await;
        }
        let _ = self.folder.persist_account(b"");
    }

    async fn restore(&self, stored: StoredAccount) -> Result<Account, Error> {
        let text = serde_json::to_value(&stored.credentials)?;
        let builder = Account::builder_with_http(Box::new(self.client.clone()));
        let account = builder.from_credentials(stored.credentials).await?;
        if stored.contact != self.settings.contact {
            let contact = mailto(&self.settings.contact);
            account.update_contacts(&[&contact]).await?;
            self.persist(&self.to_bytes(&serde_json::from_value(text)?)?);
        }
        Ok(account)
    }

    /// Creates an account. Returns it with the bytes to persist.
    async fn create(&self) -> Result<(Account, Vec<u8>), Error> {
        let external = self.settings.external_account.as_ref();
        let external =
            external.map(|account| ExternalAccountKey::new(account.id.clone(), &account.key));
        let contact = mailto(&self.settings.contact);
        let new = NewAccount {
            contact: &[&contact],
            terms_of_service_agreed: true,
            only_return_existing: false,
        };
        let (account, credentials) = Account::builder_with_http(Box::new(self.client.clone()))
            .create(&new, self.settings.directory.clone(), external.as_ref())
            .await?;
        info!(
            directory = self.settings.directory,
            account = account.id(),
            "ACME account created"
        );
        let bytes = self.to_bytes(&credentials)?;
        Ok((account, bytes))
    }

    fn to_bytes(&self, credentials: &AccountCredentials) -> Result<Vec<u8>, Error> {
        #[derive(Serialize)]
        struct StoredAccountRef<'a> {
            credentials: &'a AccountCredentials,
            contact: &'a str,
        }
        let stored = StoredAccountRef {
            credentials,
            contact: &self.settings.contact,
        };
        Ok(serde_json::to_vec(&stored)?)
    }

    /// Persists the account. If that fails, the account is used until the process ends.
    fn persist(&self, account: &[u8]) {
        if let Err(error) = self.folder.persist_account(account) {
            warn!(%error, "ACME account cannot be persisted; a restart creates a new account");
        }
    }
}

fn parse(bytes: &[u8]) -> Result<StoredAccount, serde_json::Error> {
    serde_json::from_slice(bytes)
}

fn mailto(contact: &str) -> String {
    format!("mailto:{contact}")
}
