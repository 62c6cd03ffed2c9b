"""One model over HTTP, with the requests and answers of TensorFlow Serving's REST API.

`settings` has the limits; `versions` has the versions of the model as they come and go; `backend` is what one of them
is to the server, `portable` and `saved_model` the two kinds, `loading` makes them; `rest` is the API's JSON,
`row_characters` what a request takes to read, `batching` joins requests, `application` has the routes, `server` runs
until it is told to stop. aiohttp and prometheus_client are the extra `serve` of setup.py.
"""
