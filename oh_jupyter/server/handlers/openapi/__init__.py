"""The description of the REST interface in OpenAPI 3.1, from the declarations of its parts."""
