"""One model over HTTP, with the requests and answers of TensorFlow Serving's REST API.

`settings` has the limits; `backend` is what a model is to the server, `portable` and `saved_model` the two kinds;
`rest` is the API's JSON, `batching` joins requests, `application` has the routes, `server` runs until it is told to
stop. aiohttp and prometheus_client are the extra `serve` of setup.py.
"""
