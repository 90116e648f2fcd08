from components.services.locks.models import FenceField

__all__ = ["FenceField"]
