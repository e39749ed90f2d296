"""The web console: a page that speaks to the API, and the cage for what code shows."""
