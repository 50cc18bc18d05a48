//! Who may ask: the rules by which the server refuses.
//!
//! The server listens on the loopback interface, which every program of this machine and every page in its browser can reach. So
//! a request must name this very server in `Host` (a page of another site that has its name resolve to 127.0.0.1 does not), must not
//! come from a page of another origin, and must have the cookie that only the printed address gives. The answers forbid the
//! page to load anything from elsewhere, and other pages to show it in a frame.

use crate::request::ApiRequest;

pub(crate) const LONGEST_BODY: usize = 64 << 10;

/// What the browser may load: nothing but what this server has.
pub(crate) const CONTENT_SECURITY_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; \
     img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

pub(crate) const HEADERS: [(&str, &str); 6] = [
    ("Content-Security-Policy", CONTENT_SECURITY_POLICY),
    ("X-Content-Type-Options", "nosniff"),
    ("Referrer-Policy", "no-referrer"),
    ("Cross-Origin-Resource-Policy", "same-origin"),
    ("Cross-Origin-Opener-Policy", "same-origin"),
    ("Cache-Control", "no-store"),
];

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RequestHeaders<'a> {
    pub(crate) host: Option<&'a str>,
    pub(crate) origin: Option<&'a str>,
    pub(crate) cookie: Option<&'a str>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    Granted,
    /// It has the token: it receives the cookie, and goes on to the page.
    Enter {
        /// The header by which the browser remembers.
        set_cookie: String,
    },
    Refused(&'static str),
}

#[derive(Clone, Debug)]
pub(crate) struct Guard {
    port: u16,
    token: String,
}

impl Guard {
    /// With a token of 128 random bits.
    pub(crate) fn new(port: u16) -> Result<Self, getrandom::Error> {
        let mut bytes = [0_u8; 16];
        getrandom::fill(&mut bytes)?;
        let token = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        Ok(Self { port, token })
    }

    pub(crate) fn address(&self) -> String {
        format!("http://127.0.0.1:{}/?token={}", self.port, self.token)
    }

    /// The cookie's name: cookies do not distinguish ports.
    fn cookie(&self) -> String {
        format!("isogloss-{}", self.port)
    }

    pub(crate) fn check(&self, headers: RequestHeaders<'_>, request: &ApiRequest) -> Access {
        let names = ["127.0.0.1", "localhost"].map(|name| format!("{name}:{}", self.port));
        if !headers.host.is_some_and(|host| names.iter().any(|name| name == host)) {
            return Access::Refused("the request is for another host");
        }
        let own = |origin: &str| names.iter().any(|name| origin == format!("http://{name}"));
        if headers.origin.is_some_and(|origin| !own(origin)) {
            return Access::Refused("the request is from a page of another origin");
        }
        if request.path == "/" && request.get("token").is_some_and(|token| same(token, &self.token))
        {
            let (name, token) = (self.cookie(), &self.token);
            let set_cookie = format!("{name}={token}; Path=/; HttpOnly; SameSite=Strict");
            return Access::Enter { set_cookie };
        }
        let name = self.cookie();
        let cookies = headers.cookie.unwrap_or_default().split(';');
        let mut values = cookies
            .filter_map(|cookie| cookie.trim().split_once('='))
            .filter(|(of, _)| *of == name);
        match values.any(|(_, value)| same(value, &self.token)) {
            true => Access::Granted,
            false => Access::Refused(
                "open the address that `isogloss explore` printed: it has the token without which nothing is \
                 answered",
            ),
        }
    }
}

/// Whether two texts are equal, in a time that does not depend on where they differ.
fn same(a: &str, b: &str) -> bool {
    let differ = a.bytes().zip(b.bytes()).fold(0, |differ, (a, b)| differ | (a ^ b));
    a.len() == b.len() && differ == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOST: Option<&str> = Some("127.0.0.1:8000");

    fn guard() -> Guard {
        Guard { port: 8000, token: "0123456789abcdef0123456789abcdef".into() }
    }

    fn is_refused(headers: RequestHeaders<'_>, path: &str) -> bool {
        matches!(guard().check(headers, &ApiRequest::of_address(path)), Access::Refused(_))
    }

    #[test]
    fn every_rule_refuses_by_itself() {
        let cookie = Some("a=b; isogloss-8000=0123456789abcdef0123456789abcdef");
        let right = RequestHeaders { host: HOST, origin: None, cookie };
        assert!(!is_refused(right, "/api/runs"));
        assert!(!is_refused(RequestHeaders { host: Some("localhost:8000"), ..right }, "/"));
        let origin = |origin| RequestHeaders { origin: Some(origin), ..right };
        assert!(!is_refused(origin("http://localhost:8000"), "/api/runs"));
        for other in ["http://localhost:8001", "https://localhost:8000", "http://evil.com", "null"]
        {
            assert!(is_refused(origin(other), "/api/runs"), "{other}");
        }
        for host in
            ["evil.com", "127.0.0.1", "127.0.0.1:8001", "localhost", "127.0.0.1:8000.evil.com"]
        {
            assert!(is_refused(RequestHeaders { host: Some(host), ..right }, "/"), "{host}");
        }
        assert!(is_refused(RequestHeaders { host: None, ..right }, "/"));
        for cookie in [
            None,
            Some(""),
            Some("isogloss-8000=0123456789abcdef0123456789abcdee"),
            Some("isogloss-8000=0123456789abcdef0123456789abcdef0"),
            Some("isogloss-8001=0123456789abcdef0123456789abcdef"),
        ] {
            assert!(is_refused(RequestHeaders { cookie, ..right }, "/page.js"), "{cookie:?}");
        }
    }

    #[test]
    fn the_token_is_exchanged_for_a_cookie_on_the_first_page_alone() {
        let headers = RequestHeaders { host: HOST, ..RequestHeaders::default() };
        let enter = |path: &str| guard().check(headers, &ApiRequest::of_address(path));
        let Access::Enter { set_cookie } = enter("/?token=0123456789abcdef0123456789abcdef") else {
            panic!("the token enters");
        };
        assert!(set_cookie.contains("HttpOnly") && set_cookie.contains("SameSite=Strict"));
        for wrong in ["/?token=", "/?token=0", "/api/runs?token=0123456789abcdef0123456789abcdef"] {
            assert!(matches!(enter(wrong), Access::Refused(_)), "{wrong}");
        }
        let (a, b) = (Guard::new(1).unwrap(), Guard::new(1).unwrap());
        assert!(a.token.len() == 32 && a.token != b.token);
    }
}
