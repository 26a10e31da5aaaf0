"""The models of the latency benchmark: definitions in torch with seeded weights, batch 1, float32.

One file per family. A file has ``RECIPES``: by name, how to make the model and its inputs. ``export.py`` writes one of
them as an ONNX model with inputs and facts about it; nothing else here needs torch.
"""

FAMILIES: dict[str, str] = {
    "resnet18": "resnet",
    "resnet50": "resnet",
    "vgg16": "vgg",
    "mobilenet_v2": "mobilenet",
    "mobilenet_v3_large": "mobilenet",
    "efficientnet_b0": "efficientnet",
    "squeezenet_1_1": "squeezenet",
    "shufflenet_v2": "shufflenet",
    "densenet121": "densenet",
    "inception_v3": "inception",
    "convnext_tiny": "convnext",
    "vit_b_16": "transformers",
    "bert_base": "transformers",
    "gpt2_token": "gpt2",
    "gpt2_prompt": "gpt2",
    "lstm_language_model": "recurrent",
    "dcgan": "dcgan",
    "dqn": "dqn",
    "unet": "unet",
    "mlp": "mlp",
    "resnext50": "library",
    "regnet_y": "library",
    "wide_resnet50": "library",
    "mnasnet": "library",
    "mobilenet_v4": "library",
    "ghostnet": "library",
    "rexnet": "library",
    "efficientnet_v2_s": "library",
    "mobilevit": "library",
    "googlenet": "library",
    "swin_tiny": "library",
    "deit_tiny": "library",
    "convnext_v2": "library",
    "mixer": "library",
    "text_recogniser": "recogniser",
    "style_transfer": "style",
}
"""The family of each model, in the order of the table."""
