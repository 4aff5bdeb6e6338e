/** A certificate of `client.example` and names below it, for tests that serve https on this machine. Nobody has signed it. */
export const certificate = `-----BEGIN CERTIFICATE-----
MIIBtzCCAV2gAwIBAgIUV3IQyJ2M8lgayyvDSwUxIzuEZC0wCgYIKoZIzj0EAwIw
GTEXMBUGA1UEAwwOY2xpZW50LmV4YW1wbGUwIBcNMjYxMTIzMDAzMzIwWhgPMjEy
NjEwMzAwMDMzMjBaMBkxFzAVBgNVBAMMDmNsaWVudC5leGFtcGxlMFkwEwYHKoZI
zj0CAQYIKoZIzj0DAQcDQgAE/5hQHMuGpwd8U6OO1yXWTLSx8IdB7/jgrgoMU+5I
e+z44jm/5d6yRYqYODes2B81mwmebclxKyIxXZXOPlhCc6OBgDB+MB0GA1UdDgQW
BBQ4lUVV3H9yMW5gCTNj7ZjpuJQDwjAfBgNVHSMEGDAWgBQ4lUVV3H9yMW5gCTNj
7ZjpuJQDwjAPBgNVHRMBAf8EBTADAQH/MCsGA1UdEQQkMCKCDmNsaWVudC5leGFt
cGxlghAqLmNsaWVudC5leGFtcGxlMAoGCCqGSM49BAMCA0gAMEUCIANsCULXU4N2
wtILYUVfeIsWJB5bJ7qcfllw4agSqUF0AiEAxt2f5ugIQwCHerFyWPpzyOaIqo1K
mXND3820TNJhOD8=
-----END CERTIFICATE-----
`;

/** Its key, which protects nothing. */
export const certificateKey = `-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgK7PV8vaTtkVsttDa
PeAd1aytdmAFJWGInY+SfTO2mfShRANCAAT/mFAcy4anB3xTo47XJdZMtLHwh0Hv
+OCuCgxT7kh77PjiOb/l3rJFipg4N6zYHzWbCZ5tyXErIjFdlc4+WEJz
-----END PRIVATE KEY-----
`;
