"""UpdateFeatures (KIP-584). Kafka 3.9 with ZooKeeper has no features, so each update fails.

Source: `KafkaController.processFeatureUpdatesWithActiveController`.
"""

from __future__ import annotations

from urteil.broker.base.offload import yield_items
from urteil.broker.controller.controller import NOT_CONTROLLER, Controller
from urteil.broker.wire.errors import ErrorCode
from urteil.broker.wire.messages import UpdateFeaturesRequest, UpdateFeaturesResponse

UNSUPPORTED = (
    "Could not apply finalized feature update because the provided feature is not supported."
)
SAFE_DOWNGRADE, UPGRADE_TYPES = 2, (1, 2, 3)


async def update_features(
    controller: Controller, request: UpdateFeaturesRequest, version: int
) -> UpdateFeaturesResponse:
    """Reject every update, with Apache Kafka's message."""
    if not controller.is_active:
        return UpdateFeaturesResponse(
            error_code=ErrorCode.NOT_CONTROLLER, error_message=NOT_CONTROLLER
        )
    updates = {
        feature_update.feature: feature_update
        async for feature_update in yield_items(request.feature_updates)
    }
    return UpdateFeaturesResponse(
        error_message=None,
        results=[
            UpdateFeaturesResponse.UpdatableFeatureResult(
                feature=name,
                error_code=ErrorCode.INVALID_REQUEST,
                error_message=_rejection_message(update, version),
            )
            async for name, update in yield_items(sorted(updates.items()))
        ],
    )


def _rejection_message(update: UpdateFeaturesRequest.FeatureUpdateKey, version: int) -> str:
    if not update.feature:
        return "Feature name can not be empty."
    if version == 0:
        may_downgrade = update.allow_downgrade
    elif update.upgrade_type in UPGRADE_TYPES:
        may_downgrade = update.upgrade_type >= SAFE_DOWNGRADE
    else:
        return "Received unknown upgrade type."
    if update.max_version_level >= 1:
        return UNSUPPORTED
    if may_downgrade:
        return "Can not delete non-existing finalized feature."
    return (
        f"Can not provide versionLevel: {update.max_version_level} less than 1 "
        "without setting the SAFE downgradeType in the request."
    )
