"""`layouts.convert` and `layouts.plan`: images of any strides from one layout into another, by the fastest kernel."""
