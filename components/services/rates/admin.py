"""The Rate limits page: the rate of each limit, the calls that were counted, and the callers that wait."""

from django.http import HttpRequest, HttpResponse
from django.urls import URLPattern
from django.utils.text import capfirst
from django.utils.translation import gettext_lazy as _

from components.control_room.pages import ControlRoomAdmin, Paging, searched
from components.services.rates import RateReader


class RateLimitAdmin(ControlRoomAdmin):
    purpose = _("A rate limit lets so many calls through in any period of some length.")

    def get_urls(self) -> list[URLPattern]:
        return [self.page("", "changelist", self.overview), *super().get_urls()]

    def overview(self, request: HttpRequest) -> HttpResponse:
        reader, texts = RateReader(), searched(request)
        context: dict[str, object]
        if texts:
            found = [info for info in map(reader.find, texts) if info][:1]
            context = {"text": "" if found else texts[0], "rows": found}
        else:
            paging = Paging.of(request, total=reader.count())
            context = {"paging": paging, "rows": reader.page(offset=paging.offset, limit=paging.size)}
        title = str(capfirst(self.opts.verbose_name_plural))
        return self.render(request, "admin/components/rates/list.html", title, context)
