"""Code shared by BrowserEnv and its worker: pipe, protocol, action language and origins."""
