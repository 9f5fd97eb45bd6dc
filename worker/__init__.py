"""Where all parts meet: settings, connection, the worker process and the local engine."""
