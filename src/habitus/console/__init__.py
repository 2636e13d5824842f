"""The web console: cameras in, a short list of what was unusual out, in a browser.

`server` puts the parts together; `database` is what they share; `store` is the one place that
writes events; `supervisor` runs the cameras' processes; `app` and its routers are the web.
"""
