//! Connection strings, in the syntax that other PostgreSQL programs accept.

use std::time::Duration;

use agent_checkpoint::Result;
use percent_encoding::percent_decode_str;
use tokio_postgres::Config;
use tokio_postgres::config::Host;

use crate::failure::wrong;
use crate::tls::{Encryption, Mode};

/// The folder of a server's socket on most systems.
const SOCKETS: &str = "/var/run/postgresql";

/// The driver's default idle time before TCP keepalives, and the shorter default of this store.
const USUAL_IDLE: Duration = Duration::from_secs(2 * 60 * 60);
const IDLE: Duration = Duration::from_secs(30);

/// The settings in a connection string. Missing ones are taken from the environment, as `psql` does.
pub(crate) fn parse(text: &str) -> Result<(Config, Encryption)> {
    parse_with(text, |name| std::env::var(name).ok())
}

fn parse_with(
    text: &str,
    variable: impl Fn(&str) -> Option<String>,
) -> Result<(Config, Encryption)> {
    let variable = |name| variable(name).filter(|value| !value.is_empty());
    let (text, mode, root) = take_tls(text);
    // The cause is not passed on: it may quote a part of a password.
    let mut config: Config = text.parse().map_err(|_| {
        wrong(
            "this is not a connection string; write `postgres://USER@HOST/DATABASE`, or `host=HOST user=USER dbname=DATABASE`, with \
             settings that this store knows, and anything but letters and digits in a password as `%` and two digits",
        )
    })?;
    // An unescaped `@` in a password ends it; the rest of the password would become a host, which messages name.
    let has_at = |host: &Host| matches!(host, Host::Tcp(name) if name.contains('@'));
    if config.get_hosts().iter().any(has_at) {
        return Err(wrong(
            "a host has an `@` in it; write one in a user's name or a password as `%40`",
        ));
    }
    if config.get_hosts().is_empty() && config.get_hostaddrs().is_empty() {
        let is_here = std::path::Path::new(SOCKETS).is_dir();
        let usual = if is_here { SOCKETS } else { "localhost" };
        config.host(variable("PGHOST").as_deref().unwrap_or(usual));
    }
    if config.get_ports().is_empty()
        && let Some(port) = variable("PGPORT")
    {
        let number = port.parse();
        config.port(number.map_err(|_| wrong("PGPORT is not a number of a port"))?);
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
    let mode = mode.or_else(|| variable("PGSSLMODE"));
    let root = root.or_else(|| variable("PGSSLROOTCERT"));
    let encryption = encryption(&mut config, mode, root)?;
    // A server that vanished silently is noticed within seconds instead of the system's two hours.
    if config.get_keepalives_idle() == USUAL_IDLE {
        config.keepalives_idle(IDLE);
    }
    if config.get_tcp_user_timeout().is_none() {
        config.tcp_user_timeout(IDLE);
    }
    Ok((config, encryption))
}

fn encryption(
    config: &mut Config,
    mode: Option<String>,
    root: Option<String>,
) -> Result<Encryption> {
    let usual = match root.as_deref() {
        Some("system") => Mode::VerifyFull,
        _ => Mode::Prefer,
    };
    let mode = mode.map_or(Some(usual), |mode| Mode::from_name(&mode));
    let mode = mode.ok_or_else(|| {
        wrong("sslmode and PGSSLMODE are one of disable, allow, prefer, require, verify-ca and verify-full")
    })?;
    // Without a host name, the certificate must name the address.
    if config.get_hosts().is_empty() {
        for address in config.get_hostaddrs().to_vec() {
            config.host(address.to_string());
        }
    }
    // A Unix socket does not leave the machine. If there is an address (`hostaddr`), the driver connects to it,
    // whatever the host is.
    let is_network = |host: &Host| matches!(host, Host::Tcp(_));
    let is_remote = !config.get_hostaddrs().is_empty() || config.get_hosts().iter().any(is_network);
    match is_remote {
        true => Encryption::new(mode, root.as_deref()),
        false => Encryption::new(Mode::Disable, None),
    }
}

/// Removes `sslmode` and `sslrootcert` from a connection string, because the driver knows only some of their values.
fn take_tls(text: &str) -> (String, Option<String>, Option<String>) {
    let (mut mode, mut root) = (None, None);
    let mut takes = |name: &str, value: &str| {
        match name {
            "sslmode" => mode = Some(value.to_owned()),
            "sslrootcert" => root = Some(value.to_owned()),
            _ => return false,
        }
        true
    };
    let is_url = ["postgres://", "postgresql://"]
        .iter()
        .any(|scheme| text.starts_with(scheme));
    let mut kept = String::new();
    if is_url {
        let behind_user = text.find('@').unwrap_or_default();
        let mark = text[behind_user..].find('?');
        let query = mark.map_or(text.len(), |mark| behind_user + mark + 1);
        kept.push_str(&text[..query]);
        let decoded = |text: &str| percent_decode_str(text).decode_utf8_lossy().into_owned();
        let is_kept = |setting: &&str| {
            let setting = setting.split_once('=');
            !setting.is_some_and(|(name, value)| takes(&decoded(name), &decoded(value)))
        };
        let settings: Vec<&str> = text[query..].split('&').filter(is_kept).collect();
        kept.push_str(&settings.join("&"));
    } else {
        let mut rest = text;
        while let Some((name, value, behind)) = first_setting(rest) {
            if !takes(name, &value) {
                kept.push_str(&rest[..rest.len() - behind.len()]);
            }
            rest = behind;
        }
        kept.push_str(rest);
    }
    (kept, mode, root)
}

/// The first setting of `name=value name='value'`, and the text after it; `None` if there is none.
fn first_setting(text: &str) -> Option<(&str, String, &str)> {
    let (name, behind) = text.split_once('=')?;
    let behind = behind.trim_start();
    let is_quoted = behind.starts_with('\'');
    let mut letters = behind.chars();
    if is_quoted {
        letters.next();
    }
    let mut value = String::new();
    loop {
        match letters.next() {
            Some('\\') => value.extend(letters.next()),
            Some('\'') if is_quoted => break,
            Some(letter) if !is_quoted && letter.is_whitespace() => break,
            Some(letter) => value.push(letter),
            None if is_quoted => return None,
            None => break,
        }
    }
    Some((name.trim(), value, letters.as_str()))
}

/// The name of the server in messages, without the password.
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

#[cfg(test)]
#[allow(
    clippy::unwrap_used,
    reason = "a test that cannot go on should say where"
)]
mod tests {
    use tokio_postgres::config::SslMode;

    use super::*;

    #[test]
    fn what_is_said_of_tls_is_taken_out_and_nothing_else() {
        for (text, kept, mode, root) in [
            ("postgres://h/d", "postgres://h/d", None, None),
            (
                "postgres://u:p%3fsslmode=x@h/d?sslmode=verify-full&sslrootcert=%2Fa%20b&user=c",
                "postgres://u:p%3fsslmode=x@h/d?user=c",
                Some("verify-full"),
                Some("/a b"),
            ),
            (
                "postgres://u:p?sslmode=disable&a@h/d?port=1&sslmode=require",
                "postgres://u:p?sslmode=disable&a@h/d?port=1",
                Some("require"),
                None,
            ),
            (
                "postgresql://h?ssl%6Dode=allow",
                "postgresql://h?",
                Some("allow"),
                None,
            ),
            (
                "host=h sslmode = verify-ca password='it\\'s sslmode=disable' sslrootcert='/a b'",
                "host=h password='it\\'s sslmode=disable'",
                Some("verify-ca"),
                Some("/a b"),
            ),
            (
                "password='open sslmode=require",
                "password='open sslmode=require",
                None,
                None,
            ),
        ] {
            let taken = take_tls(text);
            let expected = (
                kept.to_owned(),
                mode.map(str::to_owned),
                root.map(str::to_owned),
            );
            assert_eq!(taken, expected, "{text}");
        }
    }

    #[test]
    fn the_environment_speaks_where_the_string_does_not() {
        let tried = |text: &str, mode: &str| {
            let variable = |name: &str| (name == "PGSSLMODE").then(|| mode.to_owned());
            let (_, encryption) = parse_with(text, variable)?;
            Ok::<_, agent_checkpoint::Error>((encryption.first, encryption.then))
        };
        let prefers = (SslMode::Prefer, Some(SslMode::Disable));
        let allows = (SslMode::Disable, Some(SslMode::Require));
        let never = (SslMode::Disable, None);
        for (text, mode, expected) in [
            ("host=h", "", prefers),
            ("host=h", "allow", allows),
            ("host=h", "disable", never),
            ("host=h sslmode=prefer", "disable", prefers),
            ("host=h sslmode=disable", "verify-full", never),
            // A Unix socket does not leave the machine.
            #[cfg(unix)]
            ("host=/tmp", "require", never),
            #[cfg(unix)]
            ("host=/tmp hostaddr=10.0.0.1", "allow", allows),
        ] {
            assert_eq!(tried(text, mode).unwrap(), expected, "{text} {mode}");
        }
        let required = tried("postgres://h/d", "require");
        match cfg!(feature = "tls") {
            true => assert_eq!(required.unwrap(), (SslMode::Require, None)),
            false => assert!(required.unwrap_err().to_string().contains("feature `tls`")),
        }
        let unknown = tried("postgres://h/d?sslmode=full", "").unwrap_err();
        assert!(
            unknown.to_string().contains("verify-ca and verify-full"),
            "{unknown}"
        );
    }
}
