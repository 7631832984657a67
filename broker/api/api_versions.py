"""ApiVersions: the registered APIs with their version ranges."""

from __future__ import annotations

import re

from urteil.broker.api.broker_parts import BrokerParts
from urteil.broker.api.registry import SERVED, RequestContext, handler
from urteil.broker.wire.api_keys import ApiKey
from urteil.broker.wire.errors import ErrorCode
from urteil.broker.wire.messages import ApiVersionsRequest, ApiVersionsResponse

_SOFTWARE = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")


@handler(ApiKey.API_VERSIONS, 0, 4)
async def api_versions(
    broker: BrokerParts, context: RequestContext, request: ApiVersionsRequest
) -> ApiVersionsResponse:
    """Every served API with its range; INVALID_REQUEST for a client with a malformed name."""
    if context.version >= 3 and not (
        _SOFTWARE.fullmatch(request.client_software_name)
        and _SOFTWARE.fullmatch(request.client_software_version)
    ):
        return ApiVersionsResponse(error_code=ErrorCode.INVALID_REQUEST)
    return ApiVersionsResponse(
        finalized_features_epoch=0,  # the version of /feature: there are no features
        api_keys=[
            ApiVersionsResponse.ApiVersion(
                api_key=served.key,
                min_version=served.min_version,
                max_version=served.max_version,
            )
            for _, served in sorted(SERVED.items())
        ],
    )
