//! Connection strings, as the other programs for PostgreSQL take them.

use std::time::Duration;

use agent_checkpoint::{Error, Result};
use tokio_postgres::Config;
use tokio_postgres::config::{Host, SslMode};

use crate::failure::other;

/// Where a server's socket is on most systems.
const SOCKETS: &str = "/var/run/postgresql";

/// The driver's time without a word after which it asks whether the server is there, and this store's.
const USUAL_IDLE: Duration = Duration::from_secs(2 * 60 * 60);
const IDLE: Duration = Duration::from_secs(30);

/// The settings in a connection string. What it leaves open is taken from the environment, as `psql` does.
pub(crate) fn parse(text: &str) -> Result<Config> {
    // The cause is not shown: it may quote a part of a password.
    let mut config: Config = text.parse().map_err(|_| {
        wrong(
            "this is no connection string; write `postgres://USER@HOST/DATABASE`, or `host=HOST user=USER dbname=DATABASE`, with \
             settings that this store knows, and anything but letters and digits in a password as `%` and two digits",
        )
    })?;
    // An `@` in a password that is not escaped ends it, and the rest of it would be a host, which messages name.
    let has_at = |host: &Host| matches!(host, Host::Tcp(name) if name.contains('@'));
    if config.get_hosts().iter().any(has_at) {
        return Err(wrong(
            "a host has an `@` in it; write one in a user's name or a password as `%40`",
        ));
    }
    let variable = |name| {
        std::env::var(name)
            .ok()
            .filter(|value: &String| !value.is_empty())
    };
    if config.get_hosts().is_empty() && config.get_hostaddrs().is_empty() {
        let is_here = std::path::Path::new(SOCKETS).is_dir();
        let usual = if is_here { SOCKETS } else { "localhost" };
        config.host(variable("PGHOST").as_deref().unwrap_or(usual));
    }
    if config.get_ports().is_empty()
        && let Some(port) = variable("PGPORT")
    {
        let number = port.parse();
        config.port(number.map_err(|_| wrong("PGPORT is no number of a port"))?);
    }
    if config.get_user().is_none()
        && let Some(user) = variable("PGUSER")
    {
        config.user(user);
    }
    if config.get_dbname().is_none()
        && let Some(database) = variable("PGDATABASE")
    {
        config.dbname(database);
    }
    if config.get_password().is_none()
        && let Some(password) = variable("PGPASSWORD")
    {
        config.password(password);
    }
    if config.get_application_name().is_none() {
        config.application_name("agent-checkpoint");
    }
    let is_asked_for = |mode: &str| !matches!(mode, "disable" | "allow" | "prefer");
    let is_usual = config.get_ssl_mode() == SslMode::Prefer && !text.contains("sslmode");
    if config.get_ssl_mode() == SslMode::Require
        || is_usual && variable("PGSSLMODE").is_some_and(|mode| is_asked_for(&mode))
    {
        return Err(wrong(
            "the connection string or PGSSLMODE asks for TLS, which this store does not have; put a tunnel with TLS before \
             the server, or write `sslmode=disable` where the network is trusted",
        ));
    }
    // A server that is gone without a word is found out in less time than the system's two hours.
    if config.get_keepalives_idle() == USUAL_IDLE {
        config.keepalives_idle(IDLE);
    }
    if config.get_tcp_user_timeout().is_none() {
        config.tcp_user_timeout(IDLE);
    }
    Ok(config)
}

/// How the server is named in messages: without the password.
pub(crate) fn shown(config: &Config) -> String {
    let ports = config.get_ports();
    let port = |at: usize| ports.get(at).or(ports.first()).copied().unwrap_or(5432);
    let mut sockets = String::new();
    let mut hosts = Vec::new();
    for (at, host) in config.get_hosts().iter().enumerate() {
        match host {
            Host::Tcp(host) => hosts.push(format!("{host}:{}", port(at))),
            #[cfg(unix)]
            Host::Unix(folder) => {
                sockets = format!("?host={}&port={}", folder.display(), port(at));
            }
        }
    }
    if hosts.is_empty() {
        let addresses = config.get_hostaddrs().iter().enumerate();
        hosts.extend(addresses.map(|(at, address)| format!("{address}:{}", port(at))));
    }
    let user = config
        .get_user()
        .map_or(String::new(), |user| format!("{user}@"));
    let database = config
        .get_dbname()
        .or(config.get_user())
        .unwrap_or_default();
    format!("postgres://{user}{}/{database}{sockets}", hosts.join(","))
}

fn wrong(message: &str) -> Error {
    other("connection-string", message)
}
