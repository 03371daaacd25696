use std::collections::HashMap;
use std::io::{self, Read};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use docker_credential::DockerCredential;
use serde::Deserialize;
use ureq::http::{
    Response, StatusCode,
    header::{ACCEPT, AUTHORIZATION, RANGE, WWW_AUTHENTICATE},
};
use ureq::tls::{Certificate, RootCerts, TlsConfig};
use ureq::{Agent, Body};

use super::challenge::Challenge;
use super::{PullOptions, Reference};
use crate::oci::ImageProblem;

/// How long a registry may take to answer, or to send the next bytes.
const TIMEOUT: Duration = Duration::from_secs(60);
/// The largest answer with a token.
const MAX_TOKEN: u64 = 1 << 20;
/// Where the images of `docker.io` are.
const DOCKER: (&str, &str) = ("docker.io", "registry-1.docker.io");
/// The name under which `docker login` keeps the credentials of `docker.io`.
const DOCKER_LOGIN: &str = "https://index.docker.io/v1/";

/// A client of registries, with the protocol of OCI.
pub(super) struct Client {
    agent: Agent,
    options: PullOptions,
    /// The header that authorizes requests to a repository.
    authorizations: Mutex<HashMap<String, String>>,
}

/// What is asked for.
pub(super) struct Wanted<'a> {
    /// Behind `/v2/REPOSITORY/`.
    pub(super) path: String,
    pub(super) accept: &'a str,
    /// From which byte on.
    pub(super) offset: u64,
}

#[derive(Deserialize)]
struct Token {
    #[serde(alias = "access_token")]
    token: String,
}

impl Client {
    pub(super) fn new(options: PullOptions) -> Self {
        let mut config = Agent::config_builder()
            .https_only(!options.plain_http)
            .http_status_as_error(false)
            .user_agent(concat!("vmcell/", env!("CARGO_PKG_VERSION")))
            .timeout_connect(Some(TIMEOUT))
            .timeout_per_read(Some(TIMEOUT))
            .timeout_recv_response(Some(TIMEOUT));
        if !options.plain_http {
            let certificates = rustls_native_certs::load_native_certs().certs;
            let certificates = certificates
                .iter()
                .map(|certificate| Certificate::from_der(certificate).to_owned());
            let roots = RootCerts::Specific(std::sync::Arc::new(certificates.collect()));
            let provider = std::sync::Arc::new(rustls::crypto::ring::default_provider());
            let tls = TlsConfig::builder()
                .root_certs(roots)
                .unversioned_rustls_crypto_provider(provider);
            config = config.tls_config(tls.build());
        }
        Self {
            agent: config.build().into(),
            options,
            authorizations: Mutex::default(),
        }
    }

    /// Asks for something of a repository. The answer has a body that was not read yet.
    pub(super) fn get(
        &self,
        reference: &Reference,
        wanted: &Wanted<'_>,
    ) -> Result<Response<Body>, ImageProblem> {
        let url = self.url(reference, &wanted.path);
        let mut response = self.send(reference, &url, wanted)?;
        if response.status() == StatusCode::UNAUTHORIZED {
            self.authorize(reference, &response)?;
            response = self.send(reference, &url, wanted)?;
        }
        let registry = self.host(reference);
        match response.status() {
            StatusCode::OK | StatusCode::PARTIAL_CONTENT => Ok(response),
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => Err(problem(format!(
                "{registry} refuses access: `docker login {registry}`, or check the name"
            ))),
            StatusCode::NOT_FOUND => Err(problem(format!("{registry} does not have it"))),
            StatusCode::TOO_MANY_REQUESTS => Err(problem(format!(
                "{registry} was asked too often: try again later, or `docker login {registry}`"
            ))),
            status => Err(problem(format!("{registry} answers {status}"))),
        }
    }

    fn url(&self, reference: &Reference, path: &str) -> String {
        let scheme = match self.options.plain_http {
            true => "http",
            false => "https",
        };
        let host = match self.host(reference) {
            host if host == DOCKER.0 => DOCKER.1,
            host => host,
        };
        format!("{scheme}://{host}/v2/{}/{path}", reference.repository())
    }

    /// Returns who is asked, and gets the credentials that are for it.
    fn host<'a>(&'a self, reference: &'a Reference) -> &'a str {
        let mirror = self.options.mirror.as_deref();
        mirror.unwrap_or(reference.registry())
    }

    fn send(
        &self,
        reference: &Reference,
        url: &str,
        wanted: &Wanted<'_>,
    ) -> Result<Response<Body>, ImageProblem> {
        let mut request = self.agent.get(url).header(ACCEPT, wanted.accept);
        if let Some(authorization) = self.lock().get(reference.repository()) {
            request = request.header(AUTHORIZATION, authorization);
        }
        if wanted.offset > 0 {
            request = request.header(RANGE, format!("bytes={}-", wanted.offset));
        }
        request.call().map_err(|error| {
            let registry = self.host(reference);
            problem(format!("{registry} cannot be reached: {error}"))
        })
    }

    /// Does what the registry wants before it answers.
    fn authorize(
        &self,
        reference: &Reference,
        refusal: &Response<Body>,
    ) -> Result<(), ImageProblem> {
        let challenges = refusal.headers().get_all(WWW_AUTHENTICATE);
        let mut challenges = challenges.iter().filter_map(|header| header.to_str().ok());
        let challenge = challenges.find_map(Challenge::parse);
        let login = login(self.host(reference));
        let authorization = match challenge {
            Some(Challenge::Basic) => login.and_then(|login| login.basic()),
            Some(Challenge::Bearer {
                realm,
                service,
                scope,
            }) => {
                let scope =
                    scope.unwrap_or_else(|| format!("repository:{}:pull", reference.repository()));
                Some(self.token(reference, &realm, service, &scope, login)?)
            }
            None => None,
        };
        let authorization = authorization.ok_or_else(|| {
            let registry = self.host(reference);
            problem(format!(
                "{registry} wants credentials: `docker login {registry}`"
            ))
        })?;
        let repository = reference.repository().to_owned();
        self.lock().insert(repository, authorization);
        Ok(())
    }

    /// Gets a token, and returns the header with it.
    fn token(
        &self,
        reference: &Reference,
        realm: &str,
        service: Option<String>,
        scope: &str,
        login: Option<Login>,
    ) -> Result<String, ImageProblem> {
        let registry = self.host(reference);
        let service = service.unwrap_or_default();
        let response = match login {
            Some(Login::IdentityToken(token)) => self.agent.post(realm).send_form([
                ("grant_type", "refresh_token"),
                ("client_id", "vmcell"),
                ("service", &service),
                ("scope", scope),
                ("refresh_token", &token),
            ]),
            login => {
                let request = self.agent.get(realm).query("scope", scope);
                let mut request = request.query("service", service);
                if let Some(basic) = login.and_then(|login| login.basic()) {
                    request = request.header(AUTHORIZATION, basic);
                }
                request.call()
            }
        };
        let mut response = response
            .map_err(|error| problem(format!("the tokens of {registry} cannot be had: {error}")))?;
        if response.status() != StatusCode::OK {
            return Err(problem(format!(
                "{registry} gives no token ({}): `docker login {registry}`, or check the name",
                response.status()
            )));
        }
        let mut text = Vec::new();
        let body = response.body_mut().as_reader();
        let read = body.take(MAX_TOKEN).read_to_end(&mut text);
        read.map_err(|error| problem(format!("the token of {registry} is cut off: {error}")))?;
        let token: Token = serde_json::from_slice(&text)
            .map_err(|_| problem(format!("the token of {registry} is none")))?;
        Ok(format!("Bearer {}", token.token))
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, String>> {
        self.authorizations
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

/// What `docker login` has written.
enum Login {
    /// A user and a password, with a colon between them.
    Password(String),
    /// What others are given for.
    IdentityToken(String),
}

impl Login {
    fn basic(&self) -> Option<String> {
        match self {
            Self::Password(login) => Some(format!("Basic {}", STANDARD.encode(login))),
            Self::IdentityToken(_) => None,
        }
    }
}

/// Returns what `docker login` has written for a registry.
fn login(registry: &str) -> Option<Login> {
    let name = match registry == DOCKER.0 {
        true => DOCKER_LOGIN,
        false => registry,
    };
    match docker_credential::get_credential(name).ok()? {
        DockerCredential::UsernamePassword(user, password) => {
            Some(Login::Password(format!("{user}:{password}")))
        }
        DockerCredential::IdentityToken(token) => Some(Login::IdentityToken(token)),
    }
}

pub(super) fn problem(text: String) -> ImageProblem {
    ImageProblem::Registry(text)
}

/// Returns an answer's body.
pub(super) fn body(response: Response<Body>) -> impl Read + Send {
    response
        .into_body()
        .into_with_config()
        .limit(u64::MAX)
        .reader()
}

/// Returns the problem of a body that ended too early.
pub(super) fn cut_off(reference: &Reference, error: &io::Error) -> ImageProblem {
    problem(format!("{} has broken off: {error}", reference.registry()))
}
