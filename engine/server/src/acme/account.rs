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
    pub(super) fn new(settings: AcmeSettings, client: AuthorityClient, folder: AcmeFolder) -> Self {
        Self {
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
            Err(error) => {
                let failure = of_request(error);
                state.failure = Some((Instant::now(), failure.clone()));
                Err(failure)
            }
        }
    }

    async fn load_or_create(&self) -> Result<Account, Error> {
        match self.load().await {
            Some(account) => account,
            None => self.create().await,
        }
    }

    /// Forgets an account that the CA does not know.
    pub(super) async fn forget(&self) {
        warn!("CA does not know the account; the next order creates a new account");
        *self.state.lock().await = AccountState::default();
        let _ = self.folder.persist_account(b"");
    }

    async fn load(&self) -> Option<Result<Account, Error>> {
        let bytes = self.folder.account().filter(|bytes| !bytes.is_empty())?;
        let stored: StoredAccount = match serde_json::from_slice(&bytes) {
            Ok(stored) => stored,
            Err(error) => {
                warn!(%error, "persisted ACME account is damaged; creating a new account");
                return None;
            }
        };
        let builder = Account::builder_with_http(Box::new(self.client.clone()));
        Some(self.restore(builder, stored).await)
    }

    async fn restore(
        &self,
        builder: instant_acme::AccountBuilder,
        stored: StoredAccount,
    ) -> Result<Account, Error> {
        let text = serde_json::to_value(&stored.credentials)?;
        let account = builder.from_credentials(stored.credentials).await?;
        if stored.contact != self.settings.contact {
            let contact = mailto(&self.settings.contact);
            account.update_contacts(&[&contact]).await?;
            self.persist(&serde_json::from_value(text)?);
        }
        Ok(account)
    }

    async fn create(&self) -> Result<Account, Error> {
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
        self.persist(&credentials);
        Ok(account)
    }

    /// Persists the account. If that fails, the account is used until the process ends.
    fn persist(&self, credentials: &AccountCredentials) {
        #[derive(Serialize)]
        struct StoredAccountRef<'a> {
            credentials: &'a AccountCredentials,
            contact: &'a str,
        }
        let stored = serde_json::to_vec(&StoredAccountRef {
            credentials,
            contact: &self.settings.contact,
        });
        let written = stored
            .map_err(std::io::Error::other)
            .and_then(|bytes| self.folder.persist_account(&bytes));
        if let Err(error) = written {
            warn!(%error, "ACME account cannot be persisted; a restart creates a new account");
        }
    }
}

fn mailto(contact: &str) -> String {
    format!("mailto:{contact}")
}
