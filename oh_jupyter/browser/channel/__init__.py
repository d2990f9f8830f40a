"""What BrowserEnv and its worker share: the pipe, the vocabulary, settings and fences."""
