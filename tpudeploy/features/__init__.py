"""The features, a folder each, and what type checkers read of them: public results and the methods of `Workspace`.

At run time, both come from the table of features (feature_table.py), as far as their folders are there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tpudeploy.features.ab_test.operation import AbProposal as AbProposal
    from tpudeploy.features.ab_test.operation import AbResult as AbResult
    from tpudeploy.features.ab_test.operation import ab as _ab
    from tpudeploy.features.ab_test.operation import ab_propose as _ab_propose
    from tpudeploy.features.ab_test.operation import ab_result as _ab_result
    from tpudeploy.features.accuracy.operation import Accuracy as Accuracy
    from tpudeploy.features.accuracy.operation import accuracy as _accuracy
    from tpudeploy.features.alerts.operation import AlertFile as AlertFile
    from tpudeploy.features.alerts.operation import alerts as _alerts
    from tpudeploy.features.benchmark.bench_operation import ServerAddress as ServerAddress
    from tpudeploy.features.benchmark.bench_operation import SweepOptions as SweepOptions
    from tpudeploy.features.benchmark.bench_operation import bench as _bench
    from tpudeploy.features.benchmark.bench_operation import bench_import as _bench_import
    from tpudeploy.features.benchmark.bench_operation import bench_report as _bench_report
    from tpudeploy.features.benchmark.bench_operation import import_benchmarks as _import_benchmarks
    from tpudeploy.features.benchmark.compare_operation import Compared as Compared
    from tpudeploy.features.benchmark.compare_operation import compare as _compare
    from tpudeploy.features.benchmark.recommend_models_operation import RecommendedModels as RecommendedModels
    from tpudeploy.features.benchmark.recommend_models_operation import recommend_models as _recommend_models
    from tpudeploy.features.benchmark.recommend_operation import Recommended as Recommended
    from tpudeploy.features.benchmark.recommend_operation import recommend as _recommend
    from tpudeploy.features.benchmark.runs_operation import BenchmarkRun as BenchmarkRun
    from tpudeploy.features.benchmark.runs_operation import OperatingPoints as OperatingPoints
    from tpudeploy.features.benchmark.runs_operation import Runs as Runs
    from tpudeploy.features.benchmark.runs_operation import benchmark_run as _benchmark_run
    from tpudeploy.features.benchmark.runs_operation import benchmark_runs as _benchmark_runs
    from tpudeploy.features.benchmark.runs_operation import operating_points as _operating_points
    from tpudeploy.features.benchmark.trend_operation import BenchmarkTrend as BenchmarkTrend
    from tpudeploy.features.benchmark.trend_operation import benchmark_trend as _benchmark_trend
    from tpudeploy.features.campaign.operation import CampaignProposal as CampaignProposal
    from tpudeploy.features.campaign.operation import CampaignResult as CampaignResult
    from tpudeploy.features.campaign.operation import campaign as _campaign
    from tpudeploy.features.campaign.operation import campaign_propose as _campaign_propose
    from tpudeploy.features.campaign.operation import campaign_report as _campaign_report
    from tpudeploy.features.campaign.operation import campaign_result as _campaign_result
    from tpudeploy.features.compile.compiled import Compiled as Compiled
    from tpudeploy.features.compile.operation import compile_profile as _compile
    from tpudeploy.features.cost.operation import Cost as Cost
    from tpudeploy.features.cost.operation import cost as _cost
    from tpudeploy.features.diagnosis.operation import DeploymentDiagnosis as DeploymentDiagnosis
    from tpudeploy.features.diagnosis.operation import diagnose as _diagnose
    from tpudeploy.features.intake.operation import DraftedProfile as DraftedProfile
    from tpudeploy.features.intake.operation import draft_profile as _draft_profile
    from tpudeploy.features.rehearsal.operation import Rehearsal as Rehearsal
    from tpudeploy.features.rehearsal.operation import rehearse as _rehearse
    from tpudeploy.features.support.operation import support_bundle as _support_bundle
    from tpudeploy.features.tune.operation import Tuned as Tuned
    from tpudeploy.features.tune.operation import tune as _tune
    from tpudeploy.features.tune.operation import tune_result as _tune_result


class FeatureMethods:
    """The methods that features add to `Workspace`."""

    if TYPE_CHECKING:
        alerts = _alerts
        cost = _cost
        diagnose = _diagnose
        draft_profile = _draft_profile
        rehearse = _rehearse
        accuracy = _accuracy
        bench = _bench
        bench_import = _bench_import
        import_benchmarks = _import_benchmarks
        bench_report = _bench_report
        ab = _ab
        ab_propose = _ab_propose
        ab_result = _ab_result
        campaign = _campaign
        campaign_propose = _campaign_propose
        campaign_result = _campaign_result
        campaign_report = _campaign_report
        benchmark_runs = _benchmark_runs
        benchmark_run = _benchmark_run
        benchmark_trend = _benchmark_trend
        operating_points = _operating_points
        compare = _compare
        recommend = _recommend
        recommend_models = _recommend_models
        compile = _compile
        support_bundle = _support_bundle
        tune = _tune
        tune_result = _tune_result
