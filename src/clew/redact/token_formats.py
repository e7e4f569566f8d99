"""Keys and tokens with a format of their own: facts that the services publish about prefix, alphabet and length.

Lengths are lower bounds where services have let their keys grow. Raise `VERSION` with every change.
"""

from __future__ import annotations

from typing import NamedTuple

VERSION = "2026.11.17"


class TokenFormat(NamedTuple):
    """The format of one kind of token."""

    id: str
    """The name of the rule in findings and markers."""
    service: str
    """The service that issues the token."""
    at: tuple[str, ...] = ()
    """The prefixes.

    A `_` in it, or between two parts of `then`, may be a `-`, as in the names of folders that agents make of paths;
    not where the prefix is weak.
    """
    then: str = ""
    """The rest, as a regular expression. The group `show` stays readable (for addresses that contain a key)."""
    pattern: str = ""
    """The whole, instead of `at` and `then`, for tokens whose typical part is not at the beginning."""
    shape: str = ""
    """With `pattern`: the typical part, as an expression of few characters."""
    check: str = "random"
    """How the rest is checked: by which function of `value_checks`. `random` means that it is made of no words."""
    weak: bool = False
    """The prefix is short or an ordinary word: it counts only at the start of a word."""


# One format a line.
TOKEN_FORMATS = (
    # Models
    TokenFormat("anthropic_key", "Anthropic", at=("sk-ant-",), then="[A-Za-z0-9_-]{20,200}"),
    TokenFormat(
        "openai_project_key",
        "OpenAI",
        at=("sk-proj-", "sk-svcacct-", "sk-admin-", "sk-None-", "sk-service-"),
        then="[A-Za-z0-9_-]{20,250}",
    ),
    TokenFormat("openrouter_key", "OpenRouter", at=("sk-or-v1-",), then="[a-f0-9]{32,128}"),
    TokenFormat("langfuse_key", "Langfuse", at=("sk-lf-",), then="[a-f0-9-]{32,40}"),
    TokenFormat("helicone_key", "Helicone", at=("sk-helicone-", "pk-helicone-"), then="[a-z0-9-]{20,60}"),
    TokenFormat(
        "sk_key", "OpenAI, DeepSeek, Moonshot, DashScope, Stability", at=("sk-",), then="[A-Za-z0-9]{32,64}", weak=True
    ),
    TokenFormat("openai_session", "OpenAI", at=("sess-",), then="[A-Za-z0-9]{40}", weak=True),
    TokenFormat("google_api_key", "Google", at=("AIza",), then="[A-Za-z0-9_-]{35}"),
    TokenFormat("google_auth_key", "Google AI Studio", at=("AQ.Ab8",), then="[A-Za-z0-9_-]{40,80}"),
    TokenFormat("huggingface_token", "Hugging Face", at=("hf_", "api_org_"), then="[A-Za-z0-9]{30,40}"),
    TokenFormat("groq_key", "Groq", at=("gsk_",), then="[A-Za-z0-9]{48,60}"),
    TokenFormat("perplexity_key", "Perplexity", at=("pplx-",), then="[A-Za-z0-9]{40,64}"),
    TokenFormat("replicate_token", "Replicate", at=("r8_",), then="[A-Za-z0-9]{37,40}"),
    TokenFormat("xai_key", "xAI", at=("xai-",), then="[A-Za-z0-9]{60,100}"),
    TokenFormat("langsmith_key", "LangSmith", at=("lsv2_pt_", "lsv2_sk_"), then="[a-f0-9]{32}_[a-f0-9]{10}"),
    TokenFormat("langchain_key", "LangChain", at=("ls__",), then="[a-f0-9]{32}"),
    TokenFormat("cerebras_key", "Cerebras", at=("csk-",), then="[a-z0-9]{40,60}", weak=True),
    TokenFormat("fireworks_key", "Fireworks", at=("fw_",), then="[A-Za-z0-9]{22,32}", weak=True),
    TokenFormat("together_key", "Together", at=("tgp_v1_",), then="[A-Za-z0-9_-]{40,50}"),
    TokenFormat("nvidia_key", "NVIDIA", at=("nvapi-",), then="[A-Za-z0-9_-]{60,80}"),
    TokenFormat("voyage_key", "Voyage", at=("pa-",), then="[A-Za-z0-9_-]{43}", weak=True),
    TokenFormat("jina_key", "Jina", at=("jina_",), then="[A-Za-z0-9_-]{50,70}"),
    TokenFormat("tavily_key", "Tavily", at=("tvly-",), then="[A-Za-z0-9-]{30,50}"),
    TokenFormat("firecrawl_key", "Firecrawl", at=("fc-",), then="[a-f0-9]{32}", weak=True),
    TokenFormat("elevenlabs_key", "ElevenLabs, Novita", at=("sk_",), then="[a-f0-9]{48}", weak=True),
    TokenFormat("novita_key", "Novita", at=("sk_",), then="[A-Za-z0-9_-]{43}", weak=True),
    TokenFormat("pinecone_key", "Pinecone", at=("pcsk_",), then="[A-Za-z0-9_]{40,80}"),
    TokenFormat("wandb_key", "Weights & Biases", at=("wandb_v1_",), then="[A-Za-z0-9_]{40,100}"),
    TokenFormat("brave_key", "Brave Search", at=("BSA",), then="[A-Za-z0-9_-]{27,28}", weak=True),
    TokenFormat("e2b_key", "E2B", at=("e2b_",), then="[a-f0-9]{40}"),
    TokenFormat("modal_token", "Modal", at=("ak-", "as-"), then="[A-Za-z0-9]{22}", weak=True),
    TokenFormat("runpod_key", "RunPod", at=("rpa_",), then="[A-Z0-9]{40,60}", weak=True),
    TokenFormat("cursor_key", "Cursor", at=("key_", "crsr_"), then="[a-f0-9]{64}", weak=True),
    TokenFormat("amp_key", "Amp", at=("sgamp_user_",), then="[A-Z0-9]{20,40}_[a-f0-9]{40,80}"),
    TokenFormat("factory_key", "Factory", at=("fk-",), then="[A-Za-z0-9_-]{40,100}", weak=True),
    TokenFormat("mem0_key", "Mem0", at=("m0-",), then="[A-Za-z0-9]{40}", weak=True),
    TokenFormat("friendli_token", "Friendli", at=("flp_",), then="[A-Za-z0-9]{40,60}"),
    TokenFormat("upstage_key", "Upstage", at=("up_",), then="[A-Za-z0-9]{29}", weak=True),
    TokenFormat("anyscale_key", "Anyscale", at=("esecret_",), then="[a-z0-9]{26,60}"),
    TokenFormat("composio_key", "Composio", at=("ak_",), then="[A-Za-z0-9_-]{20}", weak=True),
    TokenFormat("databricks_token", "Databricks", at=("dapi", "dkea", "dose"), then="[a-f0-9]{32}(?:-[0-9])?"),
    TokenFormat("kaggle_token", "Kaggle", at=("KGAT_",), then="[a-f0-9]{32}"),
    TokenFormat("roboflow_key", "Roboflow", at=("rf_",), then="[A-Za-z0-9]{20,40}", weak=True),
    TokenFormat("arize_key", "Arize", at=("ak-",), then="[a-f0-9]{8}-[a-f0-9-]{27}-[A-Za-z0-9_-]{30,40}", weak=True),
    # Where code lives
    TokenFormat(
        "github_token", "GitHub", at=("ghp_", "gho_", "ghu_", "ghs_", "ghr_"), then="[A-Za-z0-9]{36,255}", check="crc"
    ),
    TokenFormat("github_fine_token", "GitHub", at=("github_pat_",), then="[A-Za-z0-9]{22}_[A-Za-z0-9]{40,80}"),
    TokenFormat(
        "gitlab_token",
        "GitLab",
        at=(
            "glpat-",
            "gldt-",
            "glrt-",
            "glrtr-",
            "glcbt-",
            "glptt-",
            "glft-",
            "glimt-",
            "glagent-",
            "gloas-",
            "glsoat-",
            "glffct-",
            "glwt-",
        ),
        then=r"[A-Za-z0-9_-]{20,300}(?:\.[a-z0-9]{2}\.[A-Za-z0-9]{9})?",
    ),
    TokenFormat("gitlab_runner_token", "GitLab", at=("GR1348941",), then="[A-Za-z0-9_-]{20}"),
    TokenFormat("bitbucket_password", "Bitbucket", at=("ATBB",), then="[A-Za-z0-9]{24,40}", weak=True),
    TokenFormat("atlassian_token", "Atlassian", at=("ATATT3", "ATCTT3", "ATSTT3"), then="[A-Za-z0-9_=-]{60,400}"),
    TokenFormat("trello_token", "Trello", at=("ATTA",), then="[a-f0-9]{64}[A-F0-9]{8}"),
    TokenFormat(
        "azure_devops_token", "Azure DevOps", shape="AZDO[A-Za-z0-9]{4}", pattern="[A-Za-z0-9]{76}AZDO[A-Za-z0-9]{4}"
    ),
    TokenFormat(
        "sourcegraph_token", "Sourcegraph", at=("sgp_", "slk_"), then="(?:[A-Fa-f0-9]{16}_|local_)?[A-Fa-f0-9]{40,64}"
    ),
    TokenFormat("gitea_token", "Gitea", at=("gta_",), then="[a-f0-9]{40}", weak=True),
    TokenFormat("npm_token", "npm", at=("npm_",), then="[A-Za-z0-9]{36}", check="crc"),
    TokenFormat(
        "pypi_token", "PyPI", at=("pypi-AgEIcHlwaS5vcmc", "pypi-AgENdGVzdC5weXBpLm9yZw"), then="[A-Za-z0-9_-]{50,1000}"
    ),
    TokenFormat("rubygems_key", "RubyGems", at=("rubygems_",), then="[a-f0-9]{48}"),
    TokenFormat("crates_token", "crates.io", at=("cio",), then="[A-Za-z0-9]{32}", weak=True),
    TokenFormat("nuget_key", "NuGet", at=("oy2",), then="[a-z0-9]{43}", weak=True),
    TokenFormat("clojars_token", "Clojars", at=("CLOJARS_",), then="[a-z0-9]{60}"),
    TokenFormat(
        "packagist_token",
        "Packagist",
        at=("packagist_uut_", "packagist_out_", "packagist_ack_", "packagist_acs_", "packagist_oat_"),
        then="[a-f0-9]{40,80}",
    ),
    TokenFormat("jsr_token", "JSR", at=("jsrp_",), then="[A-Za-z0-9]{30,50}"),
    TokenFormat("dockerhub_token", "Docker Hub", at=("dckr_pat_", "dckr_oat_"), then="[A-Za-z0-9_-]{27,40}"),
    TokenFormat("jfrog_key", "JFrog", at=("AKCp", "cmVmdGtu"), then="[A-Za-z0-9]{50,80}"),
    # Building and shipping
    TokenFormat("circleci_token", "CircleCI", at=("CCIPAT_", "CCIPRJ_"), then="[A-Za-z0-9]{20,24}_[a-f0-9]{40}"),
    TokenFormat("buildkite_token", "Buildkite", at=("bkua_", "bkct_", "bkaj_"), then="[A-Za-z0-9]{40,64}"),
    TokenFormat("sonar_token", "SonarQube", at=("sqp_", "squ_", "sqa_"), then="[a-f0-9]{40}"),
    TokenFormat("snyk_token", "Snyk", at=("snyk_uat.", "snyk_sat."), then=r"[a-z0-9]{8}\.[A-Za-z0-9_.-]{40,400}"),
    TokenFormat("pulumi_token", "Pulumi", at=("pul-",), then="[a-f0-9]{40}", weak=True),
    TokenFormat(
        "terraform_token",
        "HCP Terraform",
        shape=r"\.atlasv1\.",
        pattern=r"[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_=-]{60,70}",
    ),
    TokenFormat("infracost_key", "Infracost", at=("ico-",), then="[A-Za-z0-9]{32}", weak=True),
    TokenFormat("octopus_key", "Octopus Deploy", at=("API-",), then="[A-Z0-9]{26,32}", weak=True),
    TokenFormat(
        "harness_token",
        "Harness",
        at=("pat.", "sat."),
        then=r"[A-Za-z0-9_-]{22}\.[a-f0-9]{24}\.[A-Za-z0-9]{20}",
        weak=True,
    ),
    TokenFormat("depot_token", "Depot", at=("depot_project_", "depot_org_", "depot_user_"), then="[a-f0-9]{60,80}"),
    TokenFormat("chromatic_token", "Chromatic", at=("chpt_",), then="[a-z0-9]{12,40}"),
    TokenFormat("prefect_key", "Prefect", at=("pnu_", "pnb_"), then="[A-Za-z0-9]{36}"),
    TokenFormat("dbt_token", "dbt Cloud", at=("dbtc_", "dbtu_"), then="[A-Za-z0-9_-]{30,60}"),
    TokenFormat(
        "trigger_key", "Trigger.dev", at=("tr_dev_", "tr_prod_", "tr_stg_", "tr_pat_"), then="[A-Za-z0-9]{20,50}"
    ),
    TokenFormat(
        "inngest_key", "Inngest", at=("signkey-prod-", "signkey-test-", "signkey-branch-"), then="[a-f0-9]{32,64}"
    ),
    TokenFormat(
        "launchdarkly_key",
        "LaunchDarkly",
        at=("api-", "sdk-"),
        then="[a-f0-9]{8}-[a-f0-9]{4}-4[a-f0-9]{3}-[a-f0-9]{4}-[a-f0-9]{12}",
        weak=True,
    ),
    TokenFormat(
        "statsig_key",
        "Statsig, Stytch",
        at=("secret-live-", "secret-test-", "secret-"),
        then="[A-Za-z0-9_=-]{36,60}",
        weak=True,
    ),
    TokenFormat("postman_key", "Postman", at=("PMAK-",), then="[a-f0-9]{24}-[a-f0-9]{34}"),
    TokenFormat("readme_key", "ReadMe", at=("rdme_",), then="[a-z0-9]{70}"),
    TokenFormat("mintlify_key", "Mintlify", at=("mint_dsc_", "mint_"), then="[A-Za-z0-9]{20,40}", weak=True),
    TokenFormat("gitbook_token", "GitBook", at=("gb_api_",), then="[A-Za-z0-9]{30,60}"),
    TokenFormat("zuplo_key", "Zuplo", at=("zpka_",), then="[a-f0-9]{32}_[a-f0-9]{8}"),
    TokenFormat("kong_token", "Kong", at=("kpat_", "spat_"), then="[A-Za-z0-9]{40,60}"),
    TokenFormat("unkey_key", "Unkey", at=("unkey_",), then="[A-Za-z0-9]{22,40}"),
    TokenFormat("weblate_token", "Weblate", at=("wlu_", "wlp_"), then="[A-Za-z0-9]{36,40}", weak=True),
    # Secrets kept for others
    TokenFormat("onepassword_token", "1Password", at=("ops_eyJ",), then="[A-Za-z0-9_=-]{100,2000}"),
    TokenFormat(
        "onepassword_key",
        "1Password",
        at=("A3-",),
        then="[A-Z0-9]{6}-(?:[A-Z0-9]{11}|[A-Z0-9]{6}-[A-Z0-9]{5})-[A-Z0-9]{5}-[A-Z0-9]{5}-[A-Z0-9]{5}",
        weak=True,
    ),
    TokenFormat(
        "doppler_token",
        "Doppler",
        at=("dp.pt.", "dp.st.", "dp.ct.", "dp.sa.", "dp.scim.", "dp.audit."),
        then=r"(?:[a-z0-9_-]{2,35}\.)?[A-Za-z0-9]{40,44}",
    ),
    TokenFormat(
        "infisical_token", "Infisical", at=("st.",), then=r"[a-f0-9-]{24,36}\.[a-f0-9]{32}\.[a-f0-9]{32}", weak=True
    ),
    TokenFormat("vault_token", "Vault", at=("hvs.", "hvb.", "hvr."), then="[A-Za-z0-9_-]{24,300}"),
    TokenFormat("age_key", "age", at=("AGE-SECRET-KEY-1",), then="[QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L]{58}"),
    TokenFormat(
        "tailscale_key",
        "Tailscale",
        at=("tskey-auth-", "tskey-api-", "tskey-client-", "tskey-scim-", "tskey-webhook-", "tskey-"),
        then="[A-Za-z0-9-]{16,80}",
    ),
    TokenFormat("netbird_token", "NetBird", at=("nbp_",), then="[A-Za-z0-9]{36}"),
    TokenFormat("defined_key", "Defined Networking", at=("dnkey-",), then="[A-Z0-9=_-]{26}-[A-Z0-9=_-]{52}"),
    TokenFormat("ory_token", "Ory", at=("ory_pat_", "ory_at_", "ory_rt_", "ory_st_"), then="[A-Za-z0-9_.-]{30,120}"),
    TokenFormat("pangea_token", "Pangea", at=("pts_",), then="[a-z0-9]{32}", weak=True),
    TokenFormat("okta_token", "Okta", at=("SSWS 00",), then="[A-Za-z0-9_-]{40}"),
    # Clouds
    TokenFormat("aws_access_key", "AWS", at=("AKIA", "ASIA", "ABIA", "ACCA"), then="[A-Z0-9]{16}", check="spread"),
    TokenFormat("aws_bedrock_key", "AWS Bedrock", at=("ABSK", "bedrock-api-key-"), then="[A-Za-z0-9+/]{100,300}={0,2}"),
    TokenFormat(
        "aws_session_token",
        "AWS",
        at=("IQoJb3JpZ2lu", "FwoGZXIvYXdz"),
        then="[A-Za-z0-9+/%]{100,2000}(?:={1,2}|%3[Dd])*",
    ),
    TokenFormat("amazon_mws_token", "Amazon MWS", at=("amzn.mws.",), then="[a-f0-9]{8}-[a-f0-9-]{27}"),
    TokenFormat("amazon_oauth_secret", "Login with Amazon", at=("amzn1.oa2-cs.v1.",), then="[a-f0-9]{64}"),
    TokenFormat("google_oauth_secret", "Google", at=("GOCSPX-",), then="[A-Za-z0-9_-]{24,32}"),
    TokenFormat(
        "google_access_token", "Google", at=("ya29.",), then=r"[A-Za-z0-9_-]{30,1000}(?:\.[A-Za-z0-9_-]{1,400})?"
    ),
    TokenFormat("google_refresh_token", "Google", at=("1//0",), then="[A-Za-z0-9_-]{40,200}"),
    TokenFormat(
        "azure_client_secret",
        "Microsoft Entra",
        shape="[0-9]Q~[A-Za-z0-9_~.-]{20}",
        pattern="[A-Za-z0-9_~.-]{3}[0-9]Q~[A-Za-z0-9_~.-]{31,37}",
    ),
    TokenFormat("azure_ai_key", "Azure AI", shape="JQQJ99", pattern="[A-Za-z0-9]{52}JQQJ99[A-Za-z0-9]{10,26}"),
    TokenFormat(
        "azure_signed_key",
        "Azure Storage, Batch, Event Hubs, Cosmos DB, Redis",
        shape=r"(?:AzCa|AzSe|AzFu|AzRe|\+ASt|\+ABa|\+AEh|\+ARm|APIM|ACDb|AIoT)[A-Za-z0-9+/]{5,6}=",
        pattern=r"[A-Za-z0-9+/]{33,80}(?:AzCa|AzSe|AzFu|AzRe|\+ASt|\+ABa|\+AEh|\+ARm|APIM|ACDb|AIoT)[A-Za-z0-9+/]{5,6}={1,2}",
    ),
    TokenFormat("digitalocean_token", "DigitalOcean", at=("dop_v1_", "doo_v1_", "dor_v1_"), then="[a-f0-9]{64}"),
    TokenFormat(
        "digitalocean_spaces_key",
        "DigitalOcean Spaces",
        at=("DO00",),
        then="[A-Z0-9]{16}",
        weak=True,
        check="mixed_upper",
    ),
    TokenFormat("scaleway_key", "Scaleway", at=("SCW",), then="[A-Z0-9]{17}", weak=True, check="mixed_upper"),
    TokenFormat("alibaba_key", "Alibaba Cloud", at=("LTAI",), then="[A-Za-z0-9]{12,24}", weak=True),
    TokenFormat("tencent_key", "Tencent Cloud", at=("AKID",), then="[A-Za-z0-9]{32}", weak=True),
    TokenFormat(
        "yandex_key", "Yandex Cloud", at=("AQVN", "y0_", "YCAJE", "YCP"), then="[A-Za-z0-9_-]{35,60}", weak=True
    ),
    TokenFormat(
        "yandex_iam_token",
        "Yandex Cloud",
        at=("t1.",),
        then=r"[A-Za-z0-9_-]{20,400}\.[A-Za-z0-9_-]{86}={0,2}",
        weak=True,
    ),
    TokenFormat("flyio_token", "Fly.io", at=("fm1a_", "fm1r_", "fm2_", "fo1_"), then="[A-Za-z0-9+/=_,-]{40,2000}"),
    TokenFormat("render_key", "Render", at=("rnd_",), then="[A-Za-z0-9]{28,40}", weak=True),
    TokenFormat("heroku_key", "Heroku", at=("HRKU-",), then="[A-Za-z0-9_-]{36,70}"),
    TokenFormat("netlify_token", "Netlify", at=("nfp_", "nfc_", "nfo_", "nfu_"), then="[A-Za-z0-9]{36,60}"),
    TokenFormat(
        "vercel_token",
        "Vercel",
        at=("vercel_blob_rw_", "vcp_", "vci_", "vca_", "vcr_", "vck_"),
        then="[A-Za-z0-9_]{24,80}",
    ),
    TokenFormat("supabase_token", "Supabase", at=("sbp_", "sb_secret_"), then="[A-Za-z0-9_-]{30,60}"),
    TokenFormat("neon_key", "Neon", at=("napi_",), then="[a-z0-9]{60,70}"),
    TokenFormat(
        "planetscale_token",
        "PlanetScale",
        at=("pscale_tkn_", "pscale_pw_", "pscale_oauth_"),
        then="[A-Za-z0-9_=.-]{32,64}",
    ),
    TokenFormat("mongodb_atlas_secret", "MongoDB Atlas", at=("mdb_sa_sk_",), then="[A-Za-z0-9_-]{30,60}"),
    TokenFormat("cockroach_key", "CockroachDB", at=("CCDB1_",), then="[A-Za-z0-9]{22}_[A-Za-z0-9]{40}"),
    TokenFormat(
        "clickhouse_secret", "ClickHouse Cloud", at=("4b1d",), then="[A-Za-z0-9]{38}", weak=True, check="mixed"
    ),
    TokenFormat("confluent_secret", "Confluent", at=("cflt",), then="[A-Za-z0-9+/]{50,70}"),
    TokenFormat("aiven_password", "Aiven", at=("AVNS_",), then="[A-Za-z0-9_-]{16,24}"),
    TokenFormat("elastic_key", "Elastic Cloud", at=("essu_",), then="[A-Za-z0-9+/=_-]{40,200}"),
    TokenFormat("xata_key", "Xata", at=("xau_",), then="[A-Za-z0-9]{30,50}", weak=True),
    TokenFormat("tigris_secret", "Tigris", at=("tsec_",), then="[A-Za-z0-9+/_-]{40,80}"),
    TokenFormat(
        "backblaze_key", "Backblaze", at=("K001", "K002", "K003", "K004", "K005"), then="[A-Za-z0-9+/]{27}", weak=True
    ),
    TokenFormat("openshift_token", "OpenShift", at=("sha256~",), then="[A-Za-z0-9_-]{43}"),
    TokenFormat("cloudflare_origin_key", "Cloudflare", at=("v1.0-",), then="[a-f0-9]{24}-[a-f0-9]{146}", weak=True),
    TokenFormat("akamai_token", "Akamai", at=("akab-",), then="[a-z0-9]{16}-[a-z0-9]{16}", weak=True),
    TokenFormat("scalingo_token", "Scalingo", at=("tk-us-",), then="[A-Za-z0-9_-]{48}"),
    TokenFormat("appwrite_key", "Appwrite", at=("standard_",), then="[a-f0-9]{200,260}"),
    # Speaking to people
    TokenFormat(
        "slack_token",
        "Slack",
        at=(
            "xoxb-",
            "xoxp-",
            "xoxa-",
            "xoxr-",
            "xoxs-",
            "xoxo-",
            "xoxc-",
            "xoxd-",
            "xoxe-",
            "xoxe.xoxb-",
            "xoxe.xoxp-",
        ),
        then="[A-Za-z0-9%/+=-]{20,400}",
    ),
    TokenFormat("slack_app_token", "Slack", at=("xapp-",), then="[0-9]-[A-Z0-9]{8,14}-[0-9]{10,14}-[a-f0-9]{40,80}"),
    TokenFormat(
        "slack_webhook",
        "Slack",
        at=("hooks.slack.com/",),
        then="(?P<show>(?:services|workflows|triggers)/T?[A-Za-z0-9]{8,14}/(?:[AB]?[A-Za-z0-9]{8,20}/)?)[A-Za-z0-9/]{20,60}",
    ),
    TokenFormat(
        "discord_bot_token",
        "Discord",
        shape=r"\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{20}",
        pattern=r"[MNO][A-Za-z0-9_-]{23,27}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,45}",
    ),
    TokenFormat("discord_mfa_token", "Discord", at=("mfa.",), then="[A-Za-z0-9_-]{84}"),
    TokenFormat(
        "discord_webhook",
        "Discord",
        at=("discord.com/api/", "discordapp.com/api/"),
        then="(?P<show>(?:v[0-9]{1,2}/)?webhooks/[0-9]{16,20}/)[A-Za-z0-9_-]{60,80}",
    ),
    TokenFormat(
        "teams_webhook",
        "Microsoft Teams",
        at=("webhook.office.com/webhookb2/",),
        then="(?P<show>[a-f0-9-]{36}@[a-f0-9-]{36}/IncomingWebhook/)[a-f0-9]{32}/[a-f0-9-]{36}(?:/[A-Za-z0-9_-]{20,60})?",
    ),
    TokenFormat(
        "google_chat_webhook",
        "Google Chat",
        at=("chat.googleapis.com/v1/spaces/",),
        then=r"(?P<show>[A-Za-z0-9_-]{8,20}/messages\?)key=[A-Za-z0-9_-]{30,50}&token=[A-Za-z0-9_%-]{30,60}",
    ),
    TokenFormat(
        "telegram_bot_token",
        "Telegram",
        shape="[0-9]:AA[A-Za-z0-9_-]{20}",
        pattern="[0-9]{8,10}:AA[A-Za-z0-9_-]{32,33}",
    ),
    TokenFormat("twilio_key", "Twilio", at=("SK",), then="[a-f0-9]{32}", weak=True),
    TokenFormat("sendgrid_key", "SendGrid", at=("SG.",), then=r"[A-Za-z0-9_-]{16,32}\.[A-Za-z0-9_-]{16,64}", weak=True),
    TokenFormat("mailgun_key", "Mailgun", at=("key-", "pubkey-"), then="[a-f0-9]{32}", weak=True),
    TokenFormat("mailchimp_key", "Mailchimp", shape="[a-f0-9]{6}-us[0-9]", pattern="[a-f0-9]{32}-us[0-9]{1,2}"),
    TokenFormat("mandrill_key", "Mandrill", at=("md-",), then="[A-Za-z0-9_-]{22}", weak=True),
    TokenFormat("resend_key", "Resend", at=("re_",), then="[A-Za-z0-9]{8}_[A-Za-z0-9]{16,30}", weak=True),
    TokenFormat("brevo_key", "Brevo", at=("xkeysib-", "xsmtpsib-"), then="[a-f0-9]{64}-[A-Za-z0-9]{16}"),
    TokenFormat("mailersend_key", "MailerSend", at=("mlsn.",), then="[a-f0-9]{64}"),
    TokenFormat(
        "customerio_key",
        "Loops, Knock, Liveblocks, Clerk, WorkOS, Checkout",
        at=("sk_prod_", "sk_dev_", "sk_sbox_"),
        then="[A-Za-z0-9_-]{24,80}",
    ),
    TokenFormat("courier_key", "Courier", at=("pk_prod_", "dk_prod_"), then="[A-Z0-9]{28}"),
    TokenFormat("onesignal_key", "OneSignal", at=("os_v2_app_", "os_v2_org_"), then="[a-z0-9]{80,120}"),
    TokenFormat("pubnub_key", "PubNub", at=("sec-c-",), then="[A-Za-z0-9+/=-]{36,60}"),
    TokenFormat("nylas_key", "Nylas", at=("nyk_v0_",), then="[A-Za-z0-9]{40,80}"),
    TokenFormat(
        "facebook_token",
        "Meta",
        at=("EAACEdEose0cBA", "EAAG", "EAAB", "EAAC", "EAAJ", "EAAM", "EAAI"),
        then="[A-Za-z0-9]{80,400}",
        weak=True,
        check="mixed",
    ),
    TokenFormat("instagram_token", "Instagram", at=("IGQV", "IGAA"), then="[A-Za-z0-9_-]{80,300}"),
    TokenFormat(
        "twitter_bearer", "X", at=("AAAAAAAAAAAAAAAAAAAAA",), then="[A-Za-z0-9%]{60,120}", check="mixed", weak=True
    ),
    TokenFormat("vk_token", "VK", at=("vk1.a.",), then="[A-Za-z0-9_-]{60,300}"),
    TokenFormat("intercom_token", "Intercom", at=("dG9rO",), then="[A-Za-z0-9+/]{50,60}={0,2}", weak=True),
    TokenFormat(
        "hubspot_token",
        "HubSpot",
        at=("pat-na1-", "pat-na2-", "pat-eu1-", "pat-ap1-"),
        then="[a-f0-9]{8}-[a-f0-9-]{27}",
    ),
    TokenFormat(
        "salesforce_token",
        "Salesforce",
        shape="[A-Za-z0-9]!A[A-Za-z0-9._]{20}",
        pattern="00D[A-Za-z0-9]{12,15}!A[A-Za-z0-9._]{60,120}",
    ),
    # Work
    TokenFormat("notion_token", "Notion", at=("ntn_", "secret_"), then="[A-Za-z0-9]{43,50}", weak=True),
    TokenFormat("linear_key", "Linear", at=("lin_api_", "lin_oauth_", "lin_wh_"), then="[A-Za-z0-9]{32,64}"),
    TokenFormat("airtable_token", "Airtable", at=("pat",), then=r"[A-Za-z0-9]{14}\.[a-f0-9]{64}", weak=True),
    TokenFormat("clickup_token", "ClickUp", at=("pk_",), then="[0-9]{5,10}_[A-Z0-9]{32}", weak=True),
    TokenFormat(
        "asana_token", "Asana", at=("0/", "1/", "2/"), then="[0-9]{14,17}(?:/[0-9]{14,17})?:[a-f0-9]{32}", weak=True
    ),
    TokenFormat("typeform_token", "Typeform", at=("tfp_",), then="[A-Za-z0-9_.=-]{40,70}"),
    TokenFormat("figma_token", "Figma", at=("figd_", "figo_", "figu_"), then="[A-Za-z0-9_-]{36,60}"),
    TokenFormat("dropbox_token", "Dropbox", at=("sl.u.", "sl."), then="[A-Za-z0-9_-]{120,1400}", weak=True),
    TokenFormat("contentful_token", "Contentful", at=("CFPAT-",), then="[A-Za-z0-9_-]{40,60}"),
    TokenFormat("adobe_secret", "Adobe", at=("p8e-",), then="[A-Za-z0-9_-]{30,40}"),
    TokenFormat("frameio_token", "Frame.io", at=("fio-u-",), then="[A-Za-z0-9_=-]{60,70}"),
    TokenFormat("mapbox_secret", "Mapbox", at=("sk.eyJ",), then=r"[A-Za-z0-9_-]{40,200}\.[A-Za-z0-9_-]{20,30}"),
    TokenFormat(
        "rapidapi_key",
        "RapidAPI",
        shape="jsn[a-f0-9]{12}",
        pattern="[a-f0-9]{10}msh[a-f0-9]{15}p[a-f0-9]{6,8}jsn[a-f0-9]{12}",
    ),
    TokenFormat("alchemy_token", "Alchemy", at=("alcht_", "alcp_"), then="[A-Za-z0-9]{28,40}"),
    TokenFormat("maxmind_key", "MaxMind", shape="[A-Za-z0-9]_mmk", pattern="[A-Za-z0-9]{6}_[A-Za-z0-9]{29}_mmk"),
    TokenFormat("adafruit_key", "Adafruit IO", at=("aio_",), then="[A-Za-z0-9]{28}", weak=True),
    TokenFormat("lichess_token", "Lichess", at=("lip_",), then="[A-Za-z0-9]{20}", weak=True),
    TokenFormat("intra42_secret", "42", at=("s-s4t2ud-", "s-s4t2af-"), then="[a-f0-9]{64}"),
    TokenFormat("telnyx_key", "Telnyx", at=("KEY0",), then="[A-F0-9]{28,32}_[A-Za-z0-9]{20,30}"),
    TokenFormat("ebay_token", "eBay", at=("v^1.1#",), then="[A-Za-z0-9+/=#^_-]{100,2000}"),
    # Watching
    TokenFormat("grafana_token", "Grafana", at=("glsa_",), then="[A-Za-z0-9]{32}_[A-Fa-f0-9]{8}"),
    TokenFormat("grafana_cloud_token", "Grafana Cloud", at=("glc_",), then="[A-Za-z0-9+/]{32,400}={0,2}"),
    TokenFormat("grafana_old_key", "Grafana", at=("eyJrIjoi",), then="[A-Za-z0-9+/]{60,400}={0,2}"),
    TokenFormat(
        "newrelic_key",
        "New Relic",
        at=("NRAK-", "NRII-", "NRJS-", "NRSP-", "NRIQ-", "NRRA-", "NRBR-"),
        then="[A-Za-z0-9_-]{19,42}",
    ),
    TokenFormat("sentry_token", "Sentry", at=("sntryu_", "sntrya_", "sntryi_"), then="[a-f0-9]{64}"),
    TokenFormat("sentry_org_token", "Sentry", at=("sntrys_",), then="[A-Za-z0-9+/=]{60,400}_[A-Za-z0-9+/=]{40,50}"),
    TokenFormat(
        "honeycomb_key",
        "Honeycomb",
        at=("hcaik_", "hcxik_", "hcxlk_", "hcamk_", "hcalk_", "hcbik_"),
        then="[a-z0-9]{40,70}",
    ),
    TokenFormat(
        "dynatrace_token",
        "Dynatrace",
        at=("dt0c01.", "dt0s01.", "dt0s02.", "dt0s08.", "dt0s16."),
        then=r"[A-Z0-9]{8,24}\.[A-Z0-9]{64}",
    ),
    TokenFormat("axiom_token", "Axiom", at=("xaat-", "xapt-"), then="[a-f0-9]{8}-[a-f0-9-]{27}"),
    TokenFormat("tinybird_token", "Tinybird", at=("p.eyJ",), then=r"[A-Za-z0-9_-]{40,400}\.[A-Za-z0-9_-]{20,60}"),
    TokenFormat("logfire_token", "Logfire", at=("pylf_v1_", "pylf_v2_"), then="[a-z]{2,8}_[A-Za-z0-9]{30,60}"),
    TokenFormat("posthog_key", "PostHog", at=("phx_", "phs_", "pha_", "phc_", "phr_"), then="[A-Za-z0-9]{40,60}"),
    TokenFormat("fullstory_key", "FullStory", at=("na1.", "eu1."), then="[A-Za-z0-9+/]{80,140}={0,2}", weak=True),
    TokenFormat(
        "pagerduty_key",
        "PagerDuty",
        at=("u+", "pdus+_", "pdeu+_"),
        then="[A-Za-z0-9_+-]{18,40}",
        weak=True,
        check="mixed",
    ),
    TokenFormat("logtail_token", "Better Stack", at=("btk_",), then="[A-Za-z0-9]{20,40}", weak=True),
    # Money
    TokenFormat(
        "stripe_key",
        "Stripe, Clerk, Paystack",
        at=("sk_live_", "rk_live_", "sk_test_", "rk_test_", "sk_org_live_", "sk_org_test_"),
        then="[A-Za-z0-9]{16,250}",
    ),
    TokenFormat("stripe_webhook_secret", "Stripe, Svix", at=("whsec_",), then="[A-Za-z0-9+/=]{24,80}"),
    TokenFormat("square_token", "Square", at=("EAAA",), then="[A-Za-z0-9_-]{56,64}", weak=True, check="mixed"),
    TokenFormat("square_secret", "Square", at=("sq0atp-", "sq0csp-", "sq0ids-"), then="[A-Za-z0-9_-]{20,50}"),
    TokenFormat(
        "paypal_token",
        "PayPal, Braintree",
        at=("access_token$production$", "access_token$sandbox$"),
        then=r"[a-z0-9]{16}\$[a-f0-9]{32}",
    ),
    TokenFormat("adyen_key", "Adyen", at=("AQE",), then="[A-Za-z0-9]{4,8}[A-Za-z0-9+/._=-]{80,300}", weak=True),
    TokenFormat("razorpay_key", "Razorpay", at=("rzp_live_", "rzp_test_"), then="[A-Za-z0-9]{14,24}"),
    TokenFormat("flutterwave_key", "Flutterwave", at=("FLWSECK-", "FLWSECK_TEST-"), then="[A-Za-z0-9]{12,40}(?:-X)?"),
    TokenFormat("mollie_key", "Mollie, Lob", at=("live_", "live_pub_"), then="[A-Za-z0-9]{30,35}", weak=True),
    TokenFormat(
        "plaid_token",
        "Plaid",
        at=("access-sandbox-", "access-development-", "access-production-"),
        then="[a-f0-9]{8}-[a-f0-9-]{27}",
    ),
    TokenFormat(
        "shopify_token",
        "Shopify",
        at=("shpat_", "shpss_", "shpca_", "shppa_", "shptka_", "shpua_"),
        then="[a-fA-F0-9]{32}",
    ),
    TokenFormat("woocommerce_key", "WooCommerce", at=("ck_", "cs_"), then="[a-f0-9]{40}", weak=True),
    TokenFormat(
        "paddle_key",
        "Paddle",
        at=("pdl_live_apikey_", "pdl_sdbx_apikey_", "pdl_ntfset_"),
        then="[A-Za-z0-9]{20,30}_[A-Za-z0-9+/]{20,40}(?:_[A-Za-z0-9]{3})?",
    ),
    TokenFormat(
        "polar_token", "Polar", at=("polar_oat_", "polar_pat_", "polar_at_u_", "polar_rt_u_"), then="[A-Za-z0-9]{40,60}"
    ),
    TokenFormat("easypost_key", "EasyPost", at=("EZAK", "EZTK"), then="[A-Za-z0-9]{54,60}"),
    TokenFormat("shippo_token", "Shippo", at=("shippo_live_", "shippo_test_"), then="[a-f0-9]{40}"),
    TokenFormat("duffel_token", "Duffel", at=("duffel_live_", "duffel_test_"), then="[A-Za-z0-9_=-]{43}"),
    TokenFormat("persona_key", "Persona", at=("persona_production_", "persona_sandbox_"), then="[A-Za-z0-9_-]{30,50}"),
    TokenFormat("klaviyo_key", "Klaviyo", at=("pk_",), then="[a-f0-9]{34}", weak=True),
    TokenFormat(
        "coinbase_secret",
        "Coinbase",
        at=("organizations/",),
        then="(?P<show>[a-f0-9-]{36}/apiKeys/)[a-f0-9-]{36}",
        check="none",
    ),
    TokenFormat("docker_swarm_key", "Docker Swarm", at=("SWMKEY-1-", "SWMTKN-1-"), then="[A-Za-z0-9+/-]{40,100}"),
    TokenFormat(
        "nats_seed", "NATS", at=("SU", "SA", "SO", "SN", "SC", "SX"), then="[A-Z2-7]{56}", weak=True, check="nkey"
    ),
    TokenFormat("bitbucket_dc_token", "Bitbucket Data Center", at=("BBDC-",), then="[A-Za-z0-9+/@_-]{40,50}"),
    TokenFormat("llamacloud_key", "LlamaCloud", at=("llx-",), then="[A-Za-z0-9_-]{40,60}"),
    TokenFormat("postman_collection_key", "Postman", at=("PMAT-",), then="[A-Z0-9]{26}"),
    TokenFormat(
        "newrelic_license_key",
        "New Relic",
        shape="[a-f0-9]{6}NRAL",
        pattern="(?:[a-f0-9]{36}|[a-z]{2}[0-9]{2}x[a-f0-9]{30,31})NRAL",
    ),
    TokenFormat("cognition_key", "Cognition", at=("apk_", "cog_"), then="[A-Za-z0-9_=-]{30,120}", weak=True),
    TokenFormat("cloudflare_token", "Cloudflare", at=("cfk_", "cfut_", "cfat_"), then="[A-Za-z0-9]{40,60}"),
    TokenFormat("appsync_key", "AWS AppSync", at=("da2-",), then="[a-z0-9]{26}", weak=True),
    TokenFormat("apify_token", "Apify", at=("apify_api_",), then="[A-Za-z0-9-]{30,40}"),
    TokenFormat("pganalyze_key", "pganalyze", at=("pgar_",), then="[a-z0-9]{27}"),
    TokenFormat("wundergraph_key", "WunderGraph", at=("cosmo_",), then="[a-f0-9]{32}"),
    TokenFormat("settlemint_token", "SettleMint", at=("sm_aat_", "sm_pat_", "sm_sat_"), then="[A-Za-z0-9]{16}"),
    TokenFormat("rootly_key", "Rootly", at=("rootly_",), then="[a-f0-9]{64}"),
    TokenFormat("vault_legacy_token", "Vault", at=("s.",), then="[A-Za-z0-9]{24}", weak=True, check="random_word"),
    TokenFormat(
        "mailgun_private_key",
        "Mailgun",
        shape="[a-f0-9]{6}-[a-f0-9]{8}-[a-f0-9]{8}",
        pattern="[a-f0-9]{32}-[a-f0-9]{8}-[a-f0-9]{8}",
    ),
    TokenFormat(
        "facebook_app_token", "Meta", shape=r"[0-9]{6}\|[A-Za-z0-9_-]{20}", pattern=r"[0-9]{13,17}\|[A-Za-z0-9_-]{27}"
    ),
    TokenFormat(
        "dropbox_long_token",
        "Dropbox",
        shape="AAAAAAAAAA[A-Za-z0-9_-]{40}",
        pattern="[A-Za-z0-9]{11}AAAAAAAAAA[A-Za-z0-9_-]{43}",
        check="mixed",
    ),
    TokenFormat(
        "azure_registry_password",
        "Azure Container Registry",
        shape=r"\+ACR[A-Za-z0-9]{6}",
        pattern=r"[A-Za-z0-9+/]{42}\+ACR[A-Za-z0-9]{6}",
    ),
    TokenFormat(
        "airtable_oauth_token",
        "Airtable",
        at=("oaa",),
        then=r"[A-Za-z0-9]{14}\.v1\.[A-Za-z0-9_=-]{40,400}(?:\.[A-Za-z0-9_=-]{20,200})?",
        weak=True,
    ),
    TokenFormat("teamwork_token", "Teamwork", at=("tkn.v1_",), then="[A-Za-z0-9+/]{40,100}={0,2}"),
    TokenFormat("ntlm_response", "NTLM", at=("TlRMTVNTUAAD",), then="[A-Za-z0-9+/]{60,2000}={0,2}"),
    # Of no one service
    TokenFormat(
        "jwt",
        "JSON Web Token",
        at=("eyJ",),
        then=r"[A-Za-z0-9_-]{8,4000}\.eyJ[A-Za-z0-9_-]{8,8000}\.[A-Za-z0-9_-]{16,2000}",
        check="jwt",
    ),
    TokenFormat(
        "jwe",
        "JSON Web Encryption",
        at=("eyJ",),
        then=r"[A-Za-z0-9_-]{8,4000}\.[A-Za-z0-9_-]{0,2000}\.[A-Za-z0-9_-]{8,64}\.[A-Za-z0-9_-]{8,8000}\.[A-Za-z0-9_-]{16,64}",
        check="jwt",
    ),
    TokenFormat(
        "openssh_key_body",
        "OpenSSH",
        at=("b3BlbnNzaC1rZXktdjE",),
        then=r"[A-Za-z0-9+/\s]{100,8000}={0,2}",
        check="none",
    ),
    TokenFormat(
        "putty_key",
        "PuTTY",
        at=("Private-Lines: ",),
        then=r"[0-9]{1,3}\s{1,4}(?:[A-Za-z0-9+/=]{4,64}\s{1,4}){1,40}",
        check="none",
    ),
    TokenFormat("sealed_key", "Fernet, in an assignment", at=("FERNET_KEY=",), then="[A-Za-z0-9_-]{43}="),
    TokenFormat("bitcoin_wif", "Bitcoin", at=("xprv", "yprv", "zprv", "tprv"), then="[1-9A-HJ-NP-Za-km-z]{100,112}"),
)
