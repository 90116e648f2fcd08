"""What the plugin of django-stubs wants to know."""

SECRET_KEY = "a"
INSTALLED_APPS = ["components", "shop"]
