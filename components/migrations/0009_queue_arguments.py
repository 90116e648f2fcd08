"""Add a separate permission to see the arguments, results and tracebacks of tasks, which may contain secrets."""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("components", "0008_log_job")]

    operations = [
        migrations.AlterModelOptions(
            name="queue",
            options={
                "verbose_name": "queue",
                "verbose_name_plural": "queues",
                "permissions": (
                    ("view_arguments_queue", "Can see the arguments, results and tracebacks of tasks"),
                ),
                "managed": False,
                "default_permissions": ("view", "change", "delete"),
                "base_manager_name": "objects",
            },
        ),
    ]
